"""Sealing and signing on the command line: the commands of both roles, as transcripts."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyrage
import pytest

import mole
from chosen_layout import cut_options
from command import call, files_in, right
from deliveries import make_layer, write_npz
from secrets_kept import DEVELOPER, RECIPIENT, STRANGER, sealed_files, ssh_key

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
KEY = ["--layer", "layer.safetensors", "--key", "my.key", "--identity", "owner.txt"]
OWNER = pyrage.x25519.Identity.generate()
WITH = ["--identity", "developer.txt"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Data, a layer, a key, identities, and a sealed and signed delivery."""
    folder = tmp_path_factory.mktemp("place")
    write_npz(folder / "data.npz", train=60, test=20)
    mole.save(make_layer(), folder / "layer.safetensors")
    (folder / "developer.txt").write_text(f"{DEVELOPER}\n")
    (folder / "stranger.txt").write_text(f"{STRANGER}\n")
    (folder / "owner.txt").write_text(f"{OWNER}\n")  # opens the key, and no delivery
    ssh_key(folder / "provider")
    ssh_key(folder / "other")
    owner = str(OWNER.to_public())
    made = ["--out", "my.key", "--recipient", owner, *cut_options()]
    right("keygen", "--layer", "layer.safetensors", *made, cwd=folder)
    facts = right(
        "deliver",
        "data.npz",
        *KEY,
        "--recipient",
        RECIPIENT,
        "--sign",
        "provider",
        "--out",
        "d",
        cwd=folder,
    )
    assert facts["sealed"] is True
    return folder


def test_the_developer_s_commands_take_an_identity(place, tmp_path):
    checks = right("verify", "d", *WITH, "--signer", "provider.pub", cwd=place)
    assert all(check["holds"] for check in checks.values())
    assert checks["signature"]["detail"].startswith("signed by SHA256:")
    facts = right("info", "d", *WITH, cwd=place)
    assert (facts["sealed"], facts["signature"][:16]) == (True, "signed by SHA256")
    assert (
        facts["recipients"]
        == f"{RECIPIENT} and 1 other, as a rule the holder of the key; age does not show who it is"
    )
    assert (
        facts["delivery id"]
        == mole.Delivery.open(place / "d", identity=str(DEVELOPER)).manifest.delivery_id
    )
    model = tmp_path / "model.safetensors"
    (place / "tiny_sealed.py").write_text(
        "import torch\n\ndef net():\n    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), "
        "torch.nn.Flatten(), torch.nn.Linear(256, 10))\n"
    )
    network = ["--network", "tiny_sealed:net"]
    right("train", "d", *WITH, *network, "--epochs", 1, "--out", model, cwd=place)
    arguments = [
        "d",
        "--checkpoint",
        model,
        *WITH,
        *network,
        "--split",
        "test",
        "--out",
        tmp_path / "p.parquet",
    ]
    assert right("predict", *arguments, cwd=place)["rows"] == 20
    scored = right("evaluate", "d", *WITH, *network, "--checkpoint", model, cwd=place)
    assert (scored["split"], scored["rows"]) == ("test", 20)


def test_the_provider_needs_no_identity(place, tmp_path):
    arguments = ["d", "--key", "my.key", "--identity", "owner.txt", "--out", tmp_path / "r.npz"]
    right("recover", *arguments, cwd=place)
    with np.load(tmp_path / "r.npz") as recovered, np.load(place / "data.npz") as truth:
        assert np.array_equal(recovered["x_train"].transpose(0, 2, 3, 1), truth["x_train"])


def test_the_identity_opens_the_other_delivery_of_an_audit_too(place, tmp_path):
    arguments = ["--other", "d", *WITH, "--budget", 1, "--out", tmp_path / "audit"]
    assert right("audit", "d", *arguments, cwd=place)["attacks"]
    told = json.loads((tmp_path / "audit" / "audit.json").read_text())["delivery"]
    assert (told["recipients"], told["signature"][:16]) == (2, "signed by SHA256")


def test_requests_are_sealed_too(place, tmp_path):
    arguments = ["data.npz", *KEY, "--recipient", RECIPIENT, "--sign", "provider", "--out", tmp_path / "r"]
    assert right("morph", *arguments, cwd=place)["sealed"] is True
    assert "manifest.json.sig.age" in sealed_files(tmp_path / "r")
    signed = right("verify", tmp_path / "r", *WITH, cwd=place)["signature"]
    assert signed["holds"] is None
    assert signed["detail"].startswith("signed by SHA256:")


@pytest.mark.parametrize(
    "command",
    [
        ["verify", "d"],
        ["info", "d"],
        ["train", "d"],
        ["predict", "d"],
        ["evaluate", "d"],
        ["audit", "d", "--out", "nowhere"],
    ],
)
def test_a_stranger_gets_one_sentence_and_leaves_nothing(place, command):
    before = files_in(place)
    done = call(*command, cwd=place)
    assert (done.returncode, done.stderr) == (1, "mole: d is sealed: give --identity\n")
    done = call(*command, "--identity", "stranger.txt", cwd=place)
    says = (
        "mole: d/manifest.json.age is sealed for somebody else: use the identity that matches its "
        "recipient\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (1, says, "")
    assert files_in(place) == before


def test_a_wrong_signer_fails(place):
    done = call("verify", "d", *WITH, "--signer", "other.pub", cwd=place)
    assert done.returncode == 1
    assert "signature  WRONG: d/manifest.json.sig was made by SHA256:" in done.stdout
    assert len(done.stdout.splitlines()) == 2  # no shard of it was parsed
    assert done.stderr == "mole: d is not proven to be its sender's: ask for it again\n"
    done = call("verify", "d", *WITH, "--signer", "nowhere.pub", cwd=place)
    assert done.stderr == "mole: nowhere.pub cannot be read: it does not exist\n"


def test_a_layer_is_signed_and_its_signer_asked_for(place, tmp_path):
    layer, other = tmp_path / "first.safetensors", tmp_path / "other"
    exported = [
        "export-layer",
        "--network",
        "small_vgg",
        "--input-shape",
        "3x8x8",
        "--out",
        layer,
        "--sign",
        place / "other",
    ]
    facts = right(*exported, cwd=tmp_path)
    assert facts["signature"] == f"{layer}.sig"
    again = call(*exported, cwd=tmp_path)
    assert "exists already" in again.stderr
    data = [place / "data.npz", "--layer", layer, "--out", tmp_path / "review.png"]
    shown = right("review", *data, "--layer-signer", place / "other.pub", cwd=tmp_path)
    assert shown["signature"] == f"signed by {facts['signed by']}"
    wrong = ["--layer-signer", place / "provider.pub"]
    before = files_in(tmp_path)
    for command in (
        ["review", place / "data.npz", "--layer", layer, "--out", tmp_path / "2.png"],
        ["keygen", "--layer", layer, "--out", other, "--recipient", RECIPIENT],
        ["deliver", place / "data.npz", "--layer", layer, "--key", place / "my.key", "--out", other,
         "--identity", place / "owner.txt"],
    ):  # fmt: skip
        done = call(*command, *wrong, cwd=tmp_path)
        assert done.returncode == 1
        assert "which is not the key you expect" in done.stderr
    assert files_in(tmp_path) == before


def test_a_layer_that_is_exported_anew_keeps_no_old_signature(place, tmp_path):
    layer = tmp_path / "first.safetensors"
    exported = ["export-layer", "--network", "small_vgg", "--input-shape", "3x8x8", "--out", layer]
    right(*exported, "--sign", place / "other", cwd=tmp_path)
    right(*exported, "--force", cwd=tmp_path)
    assert files_in(tmp_path) == {"first.safetensors"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--recipient", "age1nobody"], "a recipient is not one that age knows"),
        (
            ["--recipient", "provider.pub"],
            "a recipient is a text, and provider.pub is a file: give its contents",
        ),
        (["--identity", "provider.pub"], "provider.pub: this is the public half of a key, and an identity"),
        (["--sign", "nowhere"], "nowhere cannot be read"),
        (["--sign", "provider.pub"], "provider.pub is not an OpenSSH private key"),
        (["--layer-signer", "provider.pub"], "layer.safetensors is not signed"),
    ],
)
def test_mistakes_are_told_before_any_work(place, tmp_path, options, says):
    done = call("deliver", "data.npz", *KEY, *options, "--out", tmp_path / "d", cwd=place)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "d").exists()
