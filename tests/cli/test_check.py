"""Errors first: all of them in one message, before the key is opened or its passphrase asked for."""

import numpy as np
import pytest
from PIL import Image

import mole
from command import call, files_in, right
from deliveries import make_key, make_layer, write_npz
from light_passphrases import save_lightly
from mole.provider.deliver import deliver

LAYER = ["--layer", "layer.safetensors"]
NO_KEY = ["--key", "no-such.key", "--passphrase-file", "no-such-passphrase.txt"]
KEY = ["--key", "my.key", "--passphrase-file", "passphrase.txt"]
IMAGES = 2000
PLANTED = {
    "size": "3x9x7 and the layer takes 3x8x8: give --resize crop or --resize stretch",
    "mode": "1x8x8 and the layer takes 3x8x8: give --mode RGB",
    "cut": "is not a readable image (",
    "empty": "it is empty: ",
    "kind": "photos/b/1.gif: it is of a kind that cannot be read: convert it to PNG, or leave it out: "
    "give --skip-bad",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """2,000 images with five different problems, and no key."""
    folder = tmp_path_factory.mktemp("check")
    rng = np.random.default_rng(0)
    mole.save(make_layer(), folder / "layer.safetensors")
    save_lightly(make_key(), folder / "my.key", "open sesame")
    (folder / "passphrase.txt").write_text("open sesame\n")
    pixels = rng.integers(0, 256, (IMAGES, 8, 8, 3), dtype=np.uint8)
    for name in ("a", "b"):
        (folder / "photos" / name).mkdir(parents=True)
    for index in range(IMAGES - 1):
        path = folder / "photos" / "ab"[index % 2] / f"{index:04}{('.jpg', '.png')[index % 3 == 0]}"
        Image.fromarray(pixels[index]).save(path)
    photos = folder / "photos"
    Image.fromarray(pixels[0, :, :7].repeat(2, axis=0)[:9]).save(photos / "a" / "0000.png")
    Image.fromarray(pixels[1, :, :7].repeat(2, axis=0)[:9]).save(photos / "a" / "0006.png")
    Image.fromarray(pixels[0, :, :, 0]).save(photos / "b" / "0001.jpg")
    cut = photos / "a" / "0002.jpg"
    cut.write_bytes(cut.read_bytes()[:-120])
    (photos / "b" / "0003.png").write_bytes(b"")
    (photos / "b" / "1.gif").write_bytes(b"GIF89a")
    return folder


@pytest.mark.parametrize("command", ["deliver", "morph"])
def test_five_problems_among_two_thousand_images_are_one_message_and_no_key_is_opened(place, command):
    before = files_in(place)
    done = call(command, "photos", *LAYER, *NO_KEY, "--out", "new", cwd=place)
    first, *problems = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert first == f"mole: 6 of {IMAGES:,} images cannot be used, for 5 reasons:"
    assert len(problems) == len(PLANTED)
    for planted in PLANTED.values():
        assert sum(planted in problem for problem in problems) == 1, planted
    assert "2 images (photos/a/0000.png, photos/a/0006.png): the first is 3x9x7" in done.stderr
    assert "no-such" not in done.stderr
    assert files_in(place) == before
    mended = call(command, "photos", *LAYER, *NO_KEY, "--skip-bad", "--out", "new", cwd=place)
    assert "no-such" in mended.stderr  # the negative twin: now the key is wanted


def test_review_looks_at_every_image(place):
    done = call("review", "photos", *LAYER, "--out", "review.png", cwd=place)
    assert done.returncode == 1
    assert all(planted in done.stderr for planted in PLANTED.values())
    found = right("review", "photos", *LAYER, "--out", "review.png", "--skip-bad", cwd=place)
    assert (found["images"], found["images that cannot be used"]) == (IMAGES, 6)
    assert (place / "review.png").exists()


@pytest.fixture(scope="module")
def huge(place):
    """A first layer that no machine can augment in blocks of rows."""
    weight = np.ones((64, 3, 3, 3), np.float32)
    mole.save(mole.FirstLayer.conv(weight, None, input_shape=(3, 1000, 1000), padding=1), place / "huge")
    return "in blocks of rows its augmented layer would take 324.0 TB, more than the memory of this machine"


def test_a_layer_that_is_too_large_is_refused_before_anything_slow(place, huge):
    before = files_in(place)
    keygen = [
        "keygen",
        "--layer",
        "huge",
        "--out",
        "new.key",
        "--passphrase-file",
        "no-such-passphrase.txt",
    ]
    done = call(*keygen, cwd=place)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"mole: a first layer for 3x1000x1000 is too large: {huge}; make a key with tiles: give --tile 8\n"
    )
    assert "no-such-passphrase.txt" in call(*keygen, "--tile", "8", cwd=place).stderr  # the negative twin
    assert files_in(place) == before
    said = call("analyse", "--layer", "huge", cwd=place)
    assert said.returncode == 0
    assert huge in said.stderr
    assert huge not in call("analyse", "--layer", "layer.safetensors", cwd=place).stderr


def test_a_place_that_is_taken_is_refused_before_the_key(place):
    write_npz(place / "data.npz", train=40, test=0)
    deliver(place / "data.npz", make_layer(), make_key(), place / "taken")
    done = call("deliver", "data.npz", *LAYER, *NO_KEY, "--dtype", "int8", "--out", "taken", cwd=place)
    assert done.stderr == (
        "mole: taken holds another delivery already, made with another dtype: choose another place, or "
        "replace it: give --force\n"
    )
    again = call("deliver", "data.npz", *LAYER, *KEY, "--out", "taken", cwd=place)
    assert (
        again.stderr
        == "mole: note: taken was complete already; nothing was done (mole verify checks its files)\n"
    )
    forced = call(
        "deliver", "data.npz", *LAYER, *KEY, "--dtype", "int8", "--out", "taken", "--force", cwd=place
    )
    assert forced.returncode == 0, forced.stderr
    assert "This is obfuscation, not encryption" in forced.stderr
    assert right("info", "taken", cwd=place)["dtype"] == "int8"


def test_what_is_no_delivery_is_told_apart(place):
    (place / "begun").mkdir(exist_ok=True)
    (place / "begun" / "unfinished.json").write_text("{}")
    for name, sentence in (
        ("nowhere", "nowhere does not exist: give the folder of a delivery"),
        (
            "begun",
            "begun holds a delivery that is not finished: its provider finishes it by repeating the ",
        ),
        ("photos", "photos has no manifest.json, so it is not a delivery"),
    ):
        for command in ("verify", "recover"):
            done = call(command, name, *(KEY if command == "recover" else []), cwd=place)
            assert (done.returncode, done.stdout) == (1, "")
            assert done.stderr.startswith(f"mole: {sentence}"), command
