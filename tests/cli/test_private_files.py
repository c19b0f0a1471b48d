"""What the commands write can be read by its owner alone, whatever the umask would allow."""

import os
import stat

import numpy as np
import pyrage
import pytest
from PIL import Image

import mole
from command import call
from deliveries import make_key, make_layer, write_npz

IDENTITY = pyrage.x25519.Identity.generate()
OPENED = ("--key", "provider.key", "--identity", "identity.txt")
PARTS = ("deliver", "data.npz", "--layer", "layer.safetensors", *OPENED)


@pytest.fixture
def place(tmp_path):
    """A folder with a layer, a key and data, and a umask that lets everybody read and write everything."""
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    make_key().save(tmp_path / "provider.key", recipients=[str(IDENTITY.to_public())])
    (tmp_path / "identity.txt").write_text(str(IDENTITY))
    write_npz(tmp_path / "data.npz")
    previous = os.umask(0)
    yield tmp_path
    os.umask(previous)


def open_to_others(folder) -> list[str]:
    """What somebody else could read, write or list."""
    return [
        str(path.relative_to(folder))
        for path in [folder, *folder.rglob("*")]
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


def test_a_delivery(place):
    assert call(*PARTS, "--out", "new/delivery", cwd=place).returncode == 0
    assert (place / "new" / "delivery" / "manifest.json").exists()
    assert open_to_others(place / "new") == []


def test_what_resumes_is_private_too_in_a_folder_that_was_there(place):
    (place / "delivery").mkdir()
    assert call(*PARTS, "--out", "delivery", cwd=place).returncode == 0
    assert open_to_others(place / "delivery") == ["."]  # the owner made it, and may share it


def test_the_picture_of_a_review(place):
    done = call("review", "data.npz", "--layer", "layer.safetensors", cwd=place)
    assert done.returncode == 0
    assert stat.S_IMODE((place / "review.png").stat().st_mode) == 0o600


def test_what_is_recovered(place):
    assert call(*PARTS, "--out", "delivery", cwd=place).returncode == 0
    assert call("recover", "delivery", *OPENED, cwd=place).returncode == 0
    assert stat.S_IMODE((place / "recovered.npz").stat().st_mode) == 0o600


def test_a_key_among_the_data_is_warned_of(place):
    (place / "photos").mkdir()
    for number in range(3):
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(place / "photos" / f"{number}.png")
    warning = "lies in photos, with your data: whoever gets a copy of that folder gets the key"
    learn = ["keygen", "--layer", "layer.safetensors", "--recipient", str(IDENTITY.to_public()), "--data"]
    done = call(*learn, "photos", "--out", "photos/new.key", cwd=place)
    assert f"mole: warning: photos/new.key {warning}" in done.stderr
    deliver = ["deliver", "photos", "--layer", "layer.safetensors", "--identity", "identity.txt", "--key"]
    done = call(*deliver, "photos/new.key", "--out", "inside", cwd=place)
    assert done.stderr.count(f"mole: warning: photos/new.key {warning}") == 1
    assert call(*deliver, "photos/new.key", "--out", "inside", "-q", cwd=place).stderr == ""
    outside = call(*deliver, "provider.key", "--out", "outside", cwd=place)
    assert (outside.returncode, warning in outside.stderr) == (0, False)
