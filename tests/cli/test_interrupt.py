"""Ctrl-C: real signals to real processes. One true sentence, exit code 130, and nothing half-written."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyrage
import pytest

import mole
from command import Done, call, files_in, interrupted_at, right
from deliveries import make_key, write_npz
from light_passphrases import save_lightly
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.checked import load_checked
from mole.storage.stores import LocalStore
from mole.torch.networks import build_network
from warm_start import MOLE, WarmStart, warm_start

RECIPIENT = str(pyrage.x25519.Identity.generate().to_public())
START_OVER = "mole: interrupted: nothing was written; call again to start over\n"
KEY = ["--key", "my.key", "--passphrase-file", "passphrase.txt"]
COURSE = ["--epochs", 3, "--seed", 3]

# Sends itself a signal in the middle of an epoch, when one before it was kept: whoever watches from outside
# may be too late on a busy machine.
IN_AN_EPOCH = """
import os, signal, sys
from torch.optim.optimizer import register_optimizer_step_pre_hook
number, kept, *arguments = sys.argv[1:]
def before_a_step(*_):
    if os.path.exists(kept):
        os.kill(os.getpid(), int(number))
register_optimizer_step_pre_hook(before_a_step)
sys.argv = ["mole", *arguments]
from mole.cli import main
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("interrupt")
    source = open_source(str(write_npz(folder / "data.npz")))
    (folder / "passphrase.txt").write_text("open sesame\n")
    first = mole.torch.export_first_layer(build_network("small_vgg", (3, 8, 8), 10), (3, 8, 8))
    mole.save(first, folder / "layer.safetensors")
    save_lightly(make_key(), folder / "my.key", "open sesame")
    deliver(source, first, make_key(), LocalStore(folder / "delivery"))
    deliver(source, first, make_key(), LocalStore(folder / "requests"), layer_dtype=None)
    assert call("train", "delivery", "--epochs", 1, cwd=folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmStart]:
    with warm_start() as started:
        yield started


@pytest.fixture(scope="module")
def undisturbed(place) -> Path:
    """A training that nobody interrupted."""
    right("train", "delivery", *COURSE, "--out", "undisturbed", cwd=place)
    return place / "undisturbed"


@pytest.mark.parametrize("module", ["mole.cli.app", "typer"])
def test_while_the_program_loads(place, module):
    done = interrupted_at("import", module, "info", "layer.safetensors", cwd=place)
    assert done == Done(130, "", "mole: interrupted before anything was done\n")


@pytest.mark.parametrize("module", ["numpy", "safetensors"])
def test_while_a_command_loads(place, module):
    done = interrupted_at("import", module, "info", "layer.safetensors", cwd=place)
    assert done == Done(130, "", START_OVER)


@pytest.mark.parametrize(
    "arguments",
    [
        ["export-layer", "--network", "small_vgg", "--input-shape", "3x8x8"],
        ["review", "data.npz", "--layer", "layer.safetensors"],
        ["keygen", "--layer", "layer.safetensors", "--recipient", RECIPIENT],
        ["recover", "delivery", *KEY],
        ["predict", "requests", "--split", "test"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_while_a_file_is_written(warm, place, arguments):
    before = files_in(place)
    done = interrupted_at("open", ".result.", *arguments, "--out", "result", cwd=place, warm=warm)
    assert done == Done(130, "", START_OVER)
    assert files_in(place) == before


@pytest.mark.parametrize("event", [("open", "manifest.json"), ("open", "audit.html")])
def test_while_a_delivery_is_attacked(warm, place, event):
    before = files_in(place)
    audit = ["audit", "delivery", "--budget", 1, "--no-appendix", "--out", "result", "--quiet"]
    done = interrupted_at(*event, *audit, cwd=place, warm=warm)
    assert done == Done(130, "", "mole: interrupted: nothing was written; call again to start over\n")
    assert files_in(place) == before


@pytest.mark.parametrize("event", [("import", "torch"), ("open", "manifest.json")])
def test_before_the_first_epoch(warm, place, event):
    before = files_in(place)
    done = interrupted_at(*event, "train", "delivery", "--out", "result", cwd=place, warm=warm)
    assert done == Done(130, "", "mole: interrupted: no epoch was finished; call again to start over\n")
    assert files_in(place) == before


def test_after_the_last_epoch_only_scores_are_missing(warm, place, tmp_path):
    (tmp_path / "new").mkdir()
    arguments = ["train", place / "delivery", "--epochs", 1, "--out", "new/result", "--quiet"]
    done = interrupted_at("os.remove", "new/result.unfinished", *arguments, cwd=tmp_path, warm=warm)
    said = (
        "mole: interrupted: new/result is complete, and only scores are missing: mole evaluate has them\n"
    )
    assert done == Done(130, "", said)
    assert mole.torch.load_checkpoint(tmp_path / "new" / "result").facts.classes == 10


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_training_goes_on_after_the_last_finished_epoch(warm, place, undisturbed, tmp_path, sent):
    arguments = ["train", place / "delivery", *COURSE]
    kept = tmp_path / "model.safetensors.unfinished"
    code, _, error = warm.begin(IN_AN_EPOCH, "mole", int(sent), kept, *arguments, cwd=tmp_path).ended()
    said = error.splitlines()
    assert kept.exists(), said
    assert code == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    if sent == signal.SIGINT:
        assert said[-1] == (
            "mole: interrupted: all finished epochs are kept in model.safetensors.unfinished; "
            "call again to resume"
        )
    assert not (tmp_path / "model.safetensors").exists()

    other = call(*arguments, "--batch-size", 32, cwd=tmp_path)
    assert other.returncode == 1
    assert "was made with batch_size = 64: repeat that call to resume it, or" in other.stderr

    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    resumed = [line for line in done.stderr.splitlines() if line.startswith("resuming after epoch ")]
    assert len(resumed) == 1
    assert not resumed[0].startswith("resuming after epoch 0 ")
    assert files_in(tmp_path) == {"model.safetensors"}
    ours, theirs = load_checked(tmp_path / "model.safetensors")[0], load_checked(undisturbed)[0]
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_force_goes_on_too_but_begins_anew_with_other_options(warm, place, tmp_path):
    arguments = ["train", place / "delivery", "--force"]
    (tmp_path / "model.safetensors").write_text("old")
    done = interrupted_at("open", ".unfinished.", *arguments, "--epochs", 2, cwd=tmp_path, warm=warm)
    assert done.returncode == 130  # in the middle of keeping the first epoch
    assert files_in(tmp_path) == {"model.safetensors"}
    (tmp_path / "model.safetensors.unfinished").write_text("no training")
    refused = call("train", place / "delivery", "--out", "model.safetensors", cwd=tmp_path)
    assert "model.safetensors exists already" in refused.stderr
    assert call(*arguments, "--epochs", 2, cwd=tmp_path).returncode == 0
    assert right("info", "model.safetensors", cwd=tmp_path)["what"] == "checkpoint"
    assert files_in(tmp_path) == {"model.safetensors"}


def test_a_delivery_goes_on(warm, place, tmp_path):
    write_npz(tmp_path / "data.npz", train=60_000, test=0)
    arguments = ["deliver", tmp_path / "data.npz", "--layer", "layer.safetensors", *KEY]
    arguments += ["--out", tmp_path / "d"]
    code, _, error = interrupted_at("os.rename", ".parquet", *arguments, cwd=place, warm=warm)
    assert code == 130
    left = list(tmp_path.glob("d/data/*.parquet"))
    kept = f"{tmp_path / 'd'} holds {len(left)} finished data file"
    assert (kept in error and "; the same call resumes\n" in error) or (not left and error == START_OVER)
    assert len(error.splitlines()) == 1
    assert not list(tmp_path.rglob("*.part"))
    assert right(*arguments, cwd=place)["rows"] == {"train": 60_000}


def test_the_demo_takes_its_folder_away(warm, tmp_path):
    process = warm.begin(MOLE, "mole", "demo", "--out", "new/demo", cwd=tmp_path)
    while process.poll() is None and not (tmp_path / "new" / "demo").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    code, _, error = process.ended()
    assert code == 130
    assert error.splitlines()[-1] == (
        "mole: interrupted: new/demo was removed again; call again to start over"
    )
    assert list(tmp_path.iterdir()) == []


def test_that_the_helper_interrupts_only_once_and_only_there(warm, place):
    assert subprocess.run([sys.executable, "-c", "import mole.cli"], check=False).returncode == 0
    for event in ("import", "open"):
        done = interrupted_at(event, "no such", "info", "layer.safetensors", cwd=place, warm=warm)
        assert done.returncode == 0
