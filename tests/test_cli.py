"""The command line as transcripts: what is typed, what comes out where, and the exit code."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyrage
import pytest

import mole

IDENTITY = pyrage.x25519.Identity.generate()


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("mole"), *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    layer = mole.FirstLayer.conv(np.ones((2, 1, 3, 3), dtype=np.float32), None, input_shape=(1, 6, 6))
    key = mole.MorphKey.generate((1, 6, 6), kappa=2, insecure_seed=bytes(range(32)))
    mole.save(layer, folder / "first-layer.safetensors")
    mole.save(mole.augment(layer, key), folder / "augmented-layer.safetensors")
    key.save(folder / "recipient.key", recipients=[str(IDENTITY.to_public())])
    key.save(folder / "passphrase.key", "open sesame")
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    (folder / "passphrase.txt").write_text("open sesame\n")
    (folder / "wrong.txt").write_text("open barley\n")
    (folder / "empty.txt").write_text("")
    return folder


def test_info_of_a_first_layer(files):
    done = run("info", "first-layer.safetensors", cwd=files)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.splitlines()[:4] == [
        "what           first layer",
        "kind           conv2d",
        "input shape    1 x 6 x 6",
        "output shape   2 x 4 x 4",
    ]


def test_info_of_an_augmented_layer_as_json(files):
    done = run("info", "--json", "augmented-layer.safetensors", cwd=files)
    facts = json.loads(done.stdout)
    assert facts["what"] == "augmented layer"
    assert facts["bytes"] == 36 * 32 * 4
    assert facts["kappa"] == 2


@pytest.mark.parametrize(
    "call",
    [
        ["recipient.key", "--identity", "identity.txt"],
        ["passphrase.key", "--passphrase-file", "passphrase.txt"],
    ],
)
def test_info_of_a_key_shows_its_fingerprint_and_no_secret(files, call):
    done = run("info", *call, cwd=files)
    key = mole.MorphKey.generate((1, 6, 6), kappa=2, insecure_seed=bytes(range(32)))
    assert done.returncode == 0, done.stderr
    assert key.fingerprint in done.stdout
    assert bytes(range(32)).hex() not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (["missing"], "missing can not be read: No such file or directory"),
        (["identity.txt"], "identity.txt is not a layer file, or it is cut off"),
        (["recipient.key"], "recipient.key is encrypted for age recipients: give an identity"),
        (["passphrase.key"], "passphrase.key needs a passphrase: give --passphrase-file"),
        (["passphrase.key", "--passphrase-file", "wrong.txt"], "the passphrase is wrong"),
        (["passphrase.key", "--passphrase-file", "empty.txt"], "empty.txt has no passphrase"),
        (["passphrase.key", "--passphrase-file", "nowhere"], "nowhere can not be read"),
        (["."], ". has no manifest.json: it is no delivery"),
    ],
)
def test_a_mistake_is_one_sentence_and_no_traceback(files, call, sentence):
    done = run("info", *call, cwd=files)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("mole: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_call_has_its_own_exit_code(files):
    assert run("nonsense", cwd=files).returncode == 2
    assert run("info", cwd=files).returncode == 2
    assert run("info", "--nonsense", "x", cwd=files).returncode == 2


def test_a_full_disk_is_one_sentence(files):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    command = [Path(sys.executable).with_name("mole"), "info", "first-layer.safetensors"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, cwd=files, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "mole: the output can not be written: No space left on device\n"


def test_the_version(files):
    assert run("--version", cwd=files).stdout == f"mole {mole.__version__}\n"
