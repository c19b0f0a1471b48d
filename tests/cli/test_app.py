"""The command line as transcripts: what is typed, what comes out where, and the exit code."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyrage
import pytest

import mole
from command import MOLE, call, files_in, right, run
from light_passphrases import save_lightly
from mole.exchange.checkpoint_files import CheckpointFacts, checkpoint_metadata
from mole.storage.checked import save_checked

WITHOUT_PYTORCH = """
import sys
sys.modules["torch"] = None
from mole.cli import main
main()
"""
IDENTITY = pyrage.x25519.Identity.generate()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    layer = mole.FirstLayer.conv(np.ones((2, 1, 3, 3), dtype=np.float32), None, input_shape=(1, 6, 6))
    key = mole.MorphKey.generate((1, 6, 6), kappa=2, insecure_seed=bytes(range(32)))
    mole.save(layer, folder / "first-layer.safetensors")
    mole.save(mole.augment(layer, key), folder / "augmented-layer.safetensors")
    key.save(folder / "recipient.key", recipients=[str(IDENTITY.to_public())])
    save_lightly(key, folder / "passphrase.key", "open sesame")
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    (folder / "passphrase.txt").write_text("open sesame\n")
    return folder


def test_info_of_a_first_layer(files):
    done = run("info", "first-layer.safetensors", cwd=files)  # as a person would: in a process of its own
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.splitlines()[:4] == [
        "what           first layer",
        "kind           conv2d",
        "input shape    1 x 6 x 6",
        "output shape   2 x 4 x 4",
    ]


def test_info_of_an_augmented_layer_as_json(files):
    done = call("info", "--json", "augmented-layer.safetensors", cwd=files)
    facts = json.loads(done.stdout)
    assert facts["what"] == "augmented layer"
    assert facts["bytes"] == 36 * 32 * 4
    assert facts["kappa"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["recipient.key", "--identity", "identity.txt"],
        ["passphrase.key", "--passphrase-file", "passphrase.txt"],
    ],
)
def test_info_of_a_key_shows_its_fingerprint_and_no_secret(files, arguments):
    done = call("info", *arguments, cwd=files)
    key = mole.MorphKey.generate((1, 6, 6), kappa=2, insecure_seed=bytes(range(32)))
    assert done.returncode == 0, done.stderr
    assert key.fingerprint in done.stdout
    assert bytes(range(32)).hex() not in done.stdout + done.stderr


def test_info_of_a_checkpoint_needs_no_pytorch(files, tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3, bias=False), torch.nn.Flatten(), torch.nn.Linear(32, 3)
    )
    mole.torch.attach(model, mole.load(files / "augmented-layer.safetensors"))
    facts = mole.torch.CheckpointFacts("my:network", (1, 6, 6), 3, ("cat", "dog", "bird"))
    mole.torch.save_checkpoint(tmp_path / "model.safetensors", model, facts)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYTORCH, "info", "model.safetensors", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "what": "checkpoint",
        "network": "my:network",
        "input shape": [1, 6, 6],
        "classes": 3,
        "class names": ["cat", "dog", "bird"],
        "augmented layer": "0",
        "key fingerprint": mole.load(files / "augmented-layer.safetensors").key_fingerprint,
        "tensors": len(model.state_dict()),
        "numbers": sum(tensor.numel() for tensor in model.state_dict().values()),
        "bytes": sum(tensor.nbytes for tensor in model.state_dict().values()),
    }
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    assert "is damaged" in call("info", "model.safetensors", cwd=tmp_path).stderr


@pytest.fixture(scope="module")
def developers_files(files, tmp_path_factory) -> Path:
    """What the developer's commands look at before they load PyTorch."""
    folder = tmp_path_factory.mktemp("developer")
    np.savez(folder / "data.npz", x_train=np.zeros((4, 6, 6, 1), np.uint8), y_train=np.arange(4) % 2)
    layer, key = mole.load(files / "first-layer.safetensors"), mole.MorphKey.generate((1, 6, 6))
    mole.deliver(str(folder / "data.npz"), layer, key, str(folder / "delivery"), allow_copying_layer=True)
    facts = CheckpointFacts("small_vgg", (1, 6, 6), 2, None, key.fingerprint)
    save_checked(folder / "model.safetensors", {"w": np.ones(2)}, checkpoint_metadata(facts, None))
    (folder / "weights.pt").write_text("looked at by PyTorch")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "delivery", "--out", "new"],
        ["predict", "delivery"],
        ["evaluate", "delivery"],
        ["demo"],
        ["export-layer", "--network", "small_vgg", "--input-shape", "1x8x8"],
        ["export-layer", "--network", "weights.pt", "--input-shape", "1x8x8"],
        ["analyse", "--shape", "1x8x8", "--network", "small_vgg"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_without_pytorch_the_extra_is_named(developers_files, arguments):
    before = files_in(developers_files)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYTORCH, *arguments],
        cwd=developers_files, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert (
        done.stderr == "mole: mole.torch needs PyTorch: in the project's folder, pip install '.[torch]'\n"
    )
    assert files_in(developers_files) == before


def test_info_of_what_lies_behind_a_url(files):
    local = right("info", f"file://{files}/first-layer.safetensors", cwd=files)
    assert local == right("info", "first-layer.safetensors", cwd=files)
    done = call("info", "memory://nowhere", cwd=files)
    sentence = (
        "has no manifest.json, so it is not a delivery: give the folder or URL of one, or make one of your "
        "images with mole deliver or mole morph"
    )
    assert done.stderr == f"mole: memory://nowhere {sentence}\n"


def test_no_message_shows_a_password(files):
    done = call("info", "ftp://me:sesame@127.0.0.1:1/delivery", cwd=files)
    assert done.returncode == 1
    assert "ftp://me:***@127.0.0.1:1/delivery" in done.stderr
    assert "sesame" not in done.stderr


def test_a_question_that_gets_no_answer_is_one_sentence(files, monkeypatch):
    def unanswered(*_: object) -> None:
        raise EOFError

    monkeypatch.setattr("mole.cli.info.secrets_for", unanswered)
    done = call("info", "passphrase.key", cwd=files)
    says = "mole: nothing was typed, and nothing was written; call again to start over"
    assert (done.returncode, done.stdout, done.stderr.strip()) == (1, "", says)


def test_without_anything_the_help_is_shown(files):
    assert call(cwd=files) == call("--help", cwd=files)


def test_a_full_disk_is_one_sentence(files):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [MOLE, "info", "first-layer.safetensors"],
            cwd=files, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "mole: the output cannot be written: No space left on device\n"


def test_the_version(files):
    assert run("--version", cwd=files).stdout == f"mole {mole.__version__}\n"
