"""What a first layer gives away, on layers whose answer is known."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mole
from command import call, right
from deliveries import make_layer, write_npz
from images import smooth_images
from mole.provider.picture_sheet import FRAME, HEADING
from mole.provider.review import contact_sheet, rebuild, review_layer
from mole.scheme.convolution import features_of
from mole.scheme.likeness import best_map


def layer_of(rng, channels: int, **options) -> mole.FirstLayer:
    weight = rng.normal(size=(channels, 3, 3, 3)).astype(np.float32)
    return mole.FirstLayer.conv(weight, None, input_shape=(3, 12, 12), **options)


def test_enough_channels_rebuild_every_pixel(rng):
    images = smooth_images(rng, 4, (3, 12, 12))
    for options in ({"padding": 1}, {"padding": 1, "stride": 2}, {"padding": 2, "dilation": 2}):
        layer = layer_of(rng, 32, **options)
        assert np.allclose(rebuild(layer, features_of(layer, images)), images, atol=1e-3)
        review = review_layer(layer, images)
        assert (review.rank, review.patch) == (27, 27)
        assert review.correlation > 0.999
        assert review.copies[:2] == ((), ())


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_maps_are_compared_whatever_their_size(rng, stride):
    """A map that is the grey image, smaller, shows all of it; another image's shows less."""
    images = smooth_images(rng, 4, (3, 12, 12))
    weight = np.zeros((1, 3, stride, stride), np.float32)
    weight[:, :, stride // 2, stride // 2] = 1 / 3
    grey = mole.FirstLayer.conv(weight, None, input_shape=(3, 12, 12), stride=stride)
    review = review_layer(grey, images)
    assert review.looks_like_image == pytest.approx(1)
    assert any("its best single feature map correlates 1.00" in finding for finding in review.findings)
    assert best_map(review.features, np.roll(images, 1, axis=0)) < 0.9


def test_few_channels_rebuild_less(rng):
    images = smooth_images(rng, 4, (3, 12, 12))
    review = review_layer(layer_of(rng, 4, padding=1), images)
    assert review.rank == 4
    assert review.correlation < 0.99
    assert "4 of 27 numbers" in review.findings[0]


def test_a_layer_that_copies_pixels_is_called_hostile(rng):
    weight = np.zeros((3, 3, 3, 3), dtype=np.float32)
    weight[range(3), range(3), 1, 1] = 1
    layer = mole.FirstLayer.conv(weight, None, input_shape=(3, 12, 12), padding=1)
    review = review_layer(layer, smooth_images(rng, 4, (3, 12, 12)))
    assert review.copies[:2] == ((0, 1, 2), ())
    assert review.findings[0].startswith("HOSTILE: its channels 0, 1, 2 copy single pixels")
    honest = review_layer(layer_of(rng, 8, padding=1), smooth_images(rng, 4, (3, 12, 12)))
    assert honest.copies[:2] == ((), ())
    assert not any("HOSTILE" in finding for finding in honest.findings)


def test_linear_layers_are_reviewed_too(rng):
    images = rng.normal(size=(5, 1, 4, 4)).astype(np.float32)
    layer = mole.FirstLayer.linear(rng.normal(size=(20, 16)), rng.normal(size=20), input_shape=(1, 4, 4))
    assert np.allclose(rebuild(layer, features_of(layer, images)), images, atol=1e-4)
    assert review_layer(layer, images).looks_like_image is None


def test_the_picture_has_a_row_an_image_and_a_heading_a_column(rng):
    images = smooth_images(rng, 4, (3, 12, 12))
    sheet = np.asarray(contact_sheet(review_layer(layer_of(rng, 8, padding=1), images), images))
    side = 96 + 2 * FRAME
    assert sheet.shape == (HEADING + 4 * side, 8 * side, 3)
    columns = np.hsplit(sheet.astype(int), 8)
    assert all((column[:HEADING] < 128).any() for column in columns)
    coloured = [
        (column[HEADING:].max(axis=2) - column[HEADING:].min(axis=2)).max() > 50 for column in columns
    ]
    assert coloured == [True, *[False] * 6, True]  # images and rebuilt ones in colour, maps in grey


@pytest.mark.parametrize("missing", [False, True])
def test_the_command(tmp_path, missing):
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    write_npz(tmp_path / "data.npz")
    data = "nowhere" if missing else "data.npz"
    done = subprocess.run(
        [Path(sys.executable).with_name("mole"), "review", data, "--layer", "layer.safetensors", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if missing:
        assert done.returncode == 1
        assert done.stderr.startswith("mole: nowhere does not exist")
        assert not (tmp_path / "review.png").exists()
    else:
        assert json.loads(done.stdout)["copies pixels"] is False
        assert "pin down" in done.stderr
        with Image.open(tmp_path / "review.png") as picture:
            assert picture.width > 500


def test_the_command_on_a_linear_layer_and_on_sound(tmp_path, rng):
    np.savez(tmp_path / "images.npz", x=rng.integers(0, 256, (20, 8, 8, 3), dtype=np.uint8))
    weight = rng.normal(size=(10, 192)).astype(np.float32)
    weight[4] = np.eye(192)[100]
    mole.save(mole.FirstLayer.linear(weight, None, input_shape=(3, 8, 8)), tmp_path / "linear.safetensors")
    facts = right("review", "images.npz", "--layer", "linear.safetensors", cwd=tmp_path)
    assert (facts["copies pixels"], facts["best map correlation"]) == (True, None)
    with Image.open(tmp_path / "review.png") as picture:
        assert picture.width == 2 * (96 + 2 * FRAME)  # images and rebuilt ones
    np.savez(tmp_path / "sound.npz", x=rng.normal(size=(20, 1, 30)).astype(np.float32))
    weight = rng.normal(size=(4, 1, 9)).astype(np.float32)
    mole.save(mole.FirstLayer.conv(weight, None, input_shape=(1, 30)), tmp_path / "sound.safetensors")
    facts = right("review", "sound.npz", "--layer", "sound.safetensors", "--out", "sound.png", cwd=tmp_path)
    assert (facts["copies pixels"], facts["picture"]) == (False, None)
    assert not (tmp_path / "sound.png").exists()


@pytest.mark.parametrize("sides", [(20, 9, 9, 3), (1, 8, 8, 3)], ids=["another size", "images"])
def test_a_hostile_layer_is_told_of_before_any_image_is_looked_at(tmp_path, rng, sides):
    """Images that do not fit end the command, and what the layer does is said all the same."""
    np.savez(tmp_path / "images.npz", x=rng.integers(0, 256, sides, dtype=np.uint8))
    for name, weight in (("hostile", np.eye(192)[:4]), ("honest", rng.normal(size=(4, 192)))):
        layer = mole.FirstLayer.linear(weight.astype(np.float32), None, input_shape=(3, 8, 8))
        mole.save(layer, tmp_path / f"{name}.safetensors")
        done = call(
            "review", "images.npz", "--layer", f"{name}.safetensors", "--out", f"{name}.png", cwd=tmp_path
        )
        first, *others = done.stderr.splitlines()
        assert first.startswith("HOSTILE: its channels 0, 1, 2, 3 copy single pixels") is (
            name == "hostile"
        )
        assert "HOSTILE" not in "".join(others)
        assert done.returncode == (sides[1] == 9)
        assert ("mole: " in done.stderr) is (sides[1] == 9)


def test_quiet_does_not_hide_a_hostile_layer(tmp_path, rng):
    np.savez(tmp_path / "images.npz", x=rng.integers(0, 256, (4, 8, 8, 3), dtype=np.uint8))
    layer = mole.FirstLayer.linear(np.eye(192)[:4].astype(np.float32), None, input_shape=(3, 8, 8))
    mole.save(layer, tmp_path / "layer.safetensors")
    done = call("review", "images.npz", "--layer", "layer.safetensors", "--quiet", cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert line.startswith("HOSTILE")


def test_a_picture_that_is_there_is_in_the_way_only_of_another_one(tmp_path, rng):
    (tmp_path / "review.png").write_bytes(b"mine")
    np.savez(tmp_path / "sound.npz", x=rng.normal(size=(20, 1, 30)).astype(np.float32))
    weight = rng.normal(size=(4, 1, 9)).astype(np.float32)
    mole.save(mole.FirstLayer.conv(weight, None, input_shape=(1, 30)), tmp_path / "sound.safetensors")
    assert right("review", "sound.npz", "--layer", "sound.safetensors", cwd=tmp_path)["picture"] is None
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    write_npz(tmp_path / "data.npz")
    done = call("review", "data.npz", "--layer", "layer.safetensors", cwd=tmp_path)
    assert done.returncode == 1
    assert "review.png exists already" in done.stderr
    assert (tmp_path / "review.png").read_bytes() == b"mine"
