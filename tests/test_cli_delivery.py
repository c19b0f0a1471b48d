"""The provider's commands and the checks of both roles, as transcripts."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyrage
import pytest
from PIL import Image

import mole
from deliveries import make_layer, write_npz

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


def right(*arguments: object, cwd: Path) -> dict:
    done = run(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Data, a layer, a key and a delivery."""
    folder = tmp_path_factory.mktemp("place")
    write_npz(folder / "data.npz", train=400, test=20)
    mole.save(make_layer(), folder / "layer.safetensors")
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    (folder / "wrong-identity.txt").write_text(f"{pyrage.x25519.Identity.generate()}\n")
    recipient = str(IDENTITY.to_public())
    for name in ("my.key", "other.key"):
        right("keygen", "layer.safetensors", "--recipient", recipient, "--out", name, cwd=folder)
    right("deliver", "data.npz", *OPENED, "--out", "delivery", cwd=folder)
    (folder / "empty").mkdir()
    (folder / "text.txt").write_text("just text")
    (folder / "cut.npz").write_bytes((folder / "data.npz").read_bytes()[:5000])
    np.savez(folder / "nan.npz", x_train=np.full((4, 8, 8, 3), np.nan, dtype=np.float32))
    np.savez(folder / "large.npz", x_train=np.zeros((4, 9, 9, 3), dtype=np.uint8))
    np.savez(folder / "few.npz", x_train=np.zeros((4, 8, 8, 3), dtype=np.uint8))
    (folder / "photos" / "cat").mkdir(parents=True)
    Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save(folder / "photos" / "cat" / "1.png")
    (folder / "photos" / "cat" / "2.png").write_bytes(b"no image")
    return folder


OPENED = ["--layer", "layer.safetensors", "--key", "my.key", "--identity", "identity.txt"]


def test_both_roles_from_end_to_end(place, tmp_path):
    checks = right("verify", "delivery", cwd=place)
    assert all(check["holds"] for check in checks.values())
    assert right("info", "delivery", cwd=place)["rows"] == {"train": 400, "test": 20}
    out = tmp_path / "recovered.npz"
    right("recover", "delivery", "--key", "my.key", "--identity", "identity.txt", "--out", out, cwd=place)
    with np.load(out) as recovered, np.load(place / "data.npz") as truth:
        assert np.array_equal(recovered["x_train"].transpose(0, 2, 3, 1), truth["x_train"])
        assert np.array_equal(recovered["y_test"], truth["y_test"])


def test_a_whitened_key_is_the_default_with_data(place, tmp_path):
    recipient = str(IDENTITY.to_public())
    facts = right(
        "keygen", "layer.safetensors", "--data", "data.npz", "--recipient", recipient,
        "--out", tmp_path / "w.key", cwd=place,
    )  # fmt: skip
    assert facts["core"] == "whitened"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.key", "w.key.whitening"]
    opened = ["--layer", "layer.safetensors", "--key", tmp_path / "w.key", "--identity", "identity.txt"]
    right("deliver", "data.npz", *opened, "--dtype", "int8", "--out", tmp_path / "d", cwd=place)
    assert all(check["holds"] for check in right("verify", tmp_path / "d", cwd=place).values())


def test_further_data_is_morphed_with_the_same_key(place, tmp_path):
    facts = right("morph", "data.npz", *OPENED, "--out", tmp_path / "requests", cwd=place)
    delivered = right("info", "delivery", cwd=place)
    assert facts["key fingerprint"] == delivered["key fingerprint"]
    assert not (tmp_path / "requests" / "augmented-layer.safetensors").exists()


def test_the_last_lines_say_what_the_receiver_can_do(place, tmp_path):
    done = run("deliver", "data.npz", *OPENED, "--out", tmp_path / "d", cwd=place)
    assert "get your images back" in done.stderr
    assert "obfuscation, not encryption" in done.stderr
    assert "get your images back" not in done.stdout
    quiet = run("deliver", "data.npz", *OPENED, "--out", tmp_path / "d", "--quiet", cwd=place)
    assert quiet.stderr == ""


def test_the_ledger_knows_every_delivery_and_warns_of_a_second_developer(place, tmp_path):
    recipient = str(IDENTITY.to_public())
    right("keygen", "layer.safetensors", "--recipient", recipient, "--out", tmp_path / "k", cwd=place)
    mole.save(make_layer(seed=1), tmp_path / "second.safetensors")
    opened = ["--key", tmp_path / "k", "--identity", "identity.txt"]
    for number, layer in enumerate(
        ["layer.safetensors", "layer.safetensors", tmp_path / "second.safetensors"]
    ):
        done = run(
            "deliver", "data.npz", "--layer", layer, *opened, "--out", tmp_path / f"d{number}", cwd=place
        )
        assert ("used for another first layer before" in done.stderr) == (number == 2)
    entries = [json.loads(line) for line in (tmp_path / "k.ledger").read_text().splitlines()]
    assert [entry["rows"] for entry in entries] == [420, 420]  # the same delivery twice counts once
    assert (tmp_path / "k.ledger").stat().st_mode & 0o777 == 0o600


def test_ctrl_c_is_one_sentence_and_the_same_command_goes_on(place, tmp_path):
    write_npz(tmp_path / "data.npz", train=120_000, test=0)
    command = [Path(sys.executable).with_name("mole"), "deliver", tmp_path / "data.npz", *OPENED]
    command += ["--out", tmp_path / "d"]
    with subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (tmp_path / "d" / "unfinished.json").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
    assert process.returncode == 130
    assert error == "mole: interrupted: nothing half-written is left; call again to go on\n"
    assert not list(tmp_path.rglob("*.part"))
    assert right(*command[1:], cwd=place)["rows"] == {"train": 120_000}


def test_a_damaged_delivery_fails_the_check(place, tmp_path):
    import shutil

    shutil.copytree(place / "delivery", tmp_path / "d")
    (tmp_path / "d" / "README.md").write_text("changed")
    done = run("verify", tmp_path / "d", cwd=place)
    assert done.returncode == 1
    assert "README.md is damaged" in done.stdout
    assert done.stderr.startswith("mole: ")


KEY = ["--key", "my.key", "--identity", "identity.txt"]
MISTAKES = [
    (["deliver", "nowhere", *OPENED], "nowhere is not there"),
    (["deliver", "text.txt", *OPENED], "text.txt is of no kind that can be read"),
    (["deliver", "empty", *OPENED], "empty is empty"),
    (["deliver", "cut.npz", *OPENED], "cut.npz is not a readable .npz file"),
    (["deliver", "nan.npz", *OPENED], "NaN"),
    (["deliver", "large.npz", *OPENED], "3x9x9 and the layer takes 3x8x8: add --resize"),
    (["deliver", "photos", *OPENED], "2.png can not be used"),
    (["deliver", "data.npz", "--layer", "text.txt", *KEY], "text.txt is not a layer file"),
    (["deliver", "data.npz", "--layer", "missing", *KEY], "missing can not be read"),
    (["deliver", "data.npz", "--layer", "delivery/augmented-layer.safetensors", *KEY], "a first layer is"),
    (["deliver", "data.npz", "--layer", "layer.safetensors", "--key", "missing"], "missing can not be"),
    (["deliver", "data.npz", "--layer", "layer.safetensors", "--key", "text.txt"], "text.txt is not a key"),
    (
        ["deliver", "data.npz", "--layer", "layer.safetensors", "--key", "my.key"],
        "my.key is encrypted for age recipients: give an identity",
    ),
    (
        ["deliver", "data.npz", "--layer", "layer.safetensors", "--key", "my.key", "--identity",
         "wrong-identity.txt"],
        "the identity is wrong",
    ),
    (["deliver", "data.npz", *OPENED, "--dtype", "int3"], "can not be stored as 'int3'"),
    (["deliver", "data.npz", *OPENED, "--mode", "CMYK"], "colour mode 'CMYK' is unknown"),
    (["deliver", "data.npz", *OPENED, "--keep", "patient"], "no column 'patient'"),
    (["deliver", "data.npz", *OPENED, "--out", "text.txt"], "text.txt is a file"),
    (["deliver", "data.npz", *OPENED, "--out", "text.txt/below"], "can not be"),
    (["deliver", "data.npz", *OPENED, "--out", "/proc/nowhere"], "can not be written"),
    (["deliver", "few.npz", *OPENED, "--out", "delivery"], "holds another delivery already"),
    (["keygen", "missing"], "missing can not be read"),
    (["keygen", "text.txt"], "text.txt is not a layer file"),
    (["keygen", "layer.safetensors", "--out", "my.key"], "never overwritten"),
    (["keygen", "layer.safetensors", "--out", "new.key"], "new.key needs a passphrase"),
    (["keygen", "layer.safetensors", "--out", "new.key", "--recipient", "me"], "recipient"),
    (["keygen", "layer.safetensors", "--out", "new.key", "--core", "whitened"], "add --data"),
    (
        ["keygen", "layer.safetensors", "--out", "new.key", "--data", "few.npz",
         "--passphrase-file", "text.txt"],
        "at least 384 blocks",
    ),
    (["keygen", "layer.safetensors", "--out", "new.key", "--kappa", "5", "--passphrase-file", "text.txt"],
     "kappa = 5 does not divide"),
    (["verify", "missing"], "missing has no manifest.json"),
    (["verify", "empty"], "empty has no manifest.json"),
    (["verify", "text.txt"], "text.txt is a file"),
    (["recover", "delivery", "--key", "other.key", "--identity", "identity.txt", "--out", "r.npz"],
     "use that key"),
    (["recover", "empty", *KEY, "--out", "r.npz"], "empty has no manifest.json"),
    (["recover", "delivery", *KEY, "--out", "data.npz"], "data.npz exists already"),
    (["recover", "delivery", *KEY, "--out", "nowhere/r.npz"], "can not be written"),
    (["morph", "nowhere", *OPENED], "nowhere is not there"),
    (["info", "empty"], "empty has no manifest.json"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), MISTAKES, ids=lambda value: " ".join(value)[:60])
def test_a_mistake_is_one_sentence_and_nothing_is_left_behind(place, call, sentence):
    before = set(place.rglob("*"))
    out = [] if call[0] in ("verify", "info") or "--out" in call else ["--out", "new-output"]
    done = run(*call, *out, cwd=place)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("mole: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    left = {path.relative_to(place).as_posix() for path in set(place.rglob("*")) - before}
    assert left == set()


@pytest.mark.parametrize(
    "call", [["deliver"], ["keygen"], ["verify"], ["recover", "delivery"], ["deliver", "--x"]]
)
def test_a_wrong_call_has_its_own_exit_code(place, call):
    assert run(*call, cwd=place).returncode == 2
