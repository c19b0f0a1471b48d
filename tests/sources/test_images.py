"""Image files: the pixels that went into them come out, or a bad sample."""

import numpy as np
import pytest
from PIL import Image

from mole.sources.opening import open_source
from mole.sources.source import BadSampleError
from source_files import checked_message, only_sample, rgb, save_image

LOSSLESS = (".png", ".bmp", ".tif", ".tiff", ".webp")


@pytest.mark.parametrize("suffix", LOSSLESS)
def test_lossless_formats_keep_every_pixel(tmp_path, rng, suffix):
    pixels = rgb(rng)
    save_image(tmp_path / f"1{suffix.upper()}", pixels, **({"lossless": True} if suffix == ".webp" else {}))
    values, axes = only_sample(tmp_path)
    assert axes == "hwc"
    np.testing.assert_array_equal(values, pixels)


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg"])
def test_jpeg_is_close(tmp_path, suffix):
    ramp = np.add.outer(np.arange(32), np.arange(32)).astype(np.uint8)
    save_image(tmp_path / f"1{suffix}", ramp, quality=100)
    values, axes = only_sample(tmp_path)
    assert axes == "hw"
    assert np.abs(values.astype(int) - ramp).max() <= 2


def test_grey_palette_and_two_colour_images(tmp_path, rng):
    grey = rng.integers(0, 256, (5, 7), dtype=np.uint8)
    save_image(tmp_path / "grey" / "1.png", grey)
    np.testing.assert_array_equal(only_sample(tmp_path / "grey").values, grey)

    indices = rng.integers(0, 3, (5, 7), dtype=np.uint8)
    colours = np.array([[255, 0, 0], [0, 200, 10], [1, 2, 3]], dtype=np.uint8)
    palette = Image.new("P", (7, 5))
    palette.putdata(indices.reshape(-1).tolist())
    palette.putpalette(colours.reshape(-1).tolist())
    (tmp_path / "palette").mkdir()
    palette.save(tmp_path / "palette" / "1.png")
    np.testing.assert_array_equal(only_sample(tmp_path / "palette").values, colours[indices])

    bits = rng.integers(0, 2, (5, 7)).astype(bool)
    save_image(tmp_path / "bits" / "1.png", bits)
    np.testing.assert_array_equal(only_sample(tmp_path / "bits").values, bits * np.uint8(255))


@pytest.mark.parametrize("channels", [2, 4])
def test_transparency_is_kept_for_the_preparation_to_decide(tmp_path, rng, channels):
    pixels = rng.integers(0, 256, (5, 7, channels), dtype=np.uint8)
    save_image(tmp_path / "1.png", pixels)
    np.testing.assert_array_equal(only_sample(tmp_path).values, pixels)


def test_a_transparent_colour_is_transparency_too(tmp_path):
    save_image(tmp_path / "grey" / "1.png", np.array([[7, 8]], dtype=np.uint8), transparency=7)
    np.testing.assert_array_equal(only_sample(tmp_path / "grey").values, [[[7, 0], [8, 255]]])
    colours = np.array([[[1, 2, 3], [4, 5, 6]]], dtype=np.uint8)
    save_image(tmp_path / "rgb" / "1.png", colours, transparency=(4, 5, 6))
    np.testing.assert_array_equal(only_sample(tmp_path / "rgb").values, [[[1, 2, 3, 255], [4, 5, 6, 0]]])


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_stay_sixteen_bits(tmp_path, rng, suffix):
    pixels = rng.integers(0, 65536, (5, 7), dtype=np.uint16)
    save_image(tmp_path / f"1{suffix}", pixels)
    values, axes = only_sample(tmp_path)
    assert (values.dtype, axes) == (np.uint16, "hw")
    np.testing.assert_array_equal(values, pixels)


def test_float_images(tmp_path, rng):
    pixels = rng.random((5, 7), dtype=np.float32)
    save_image(tmp_path / "1.tif", pixels)
    np.testing.assert_array_equal(only_sample(tmp_path).values, pixels)


UPRIGHT = {
    1: lambda pixels: pixels,
    3: lambda pixels: pixels[::-1, ::-1],
    6: lambda pixels: np.rot90(pixels, -1),
    8: lambda pixels: np.rot90(pixels, 1),
}


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_exif_orientation_is_undone(tmp_path, rng, orientation):
    pixels, exif = rgb(rng), Image.Exif()
    exif[0x0112] = orientation
    save_image(tmp_path / "1.png", pixels, exif=exif)
    np.testing.assert_array_equal(only_sample(tmp_path).values, UPRIGHT[orientation](pixels))


def bad_sample(path):
    with pytest.raises(BadSampleError) as caught:
        only_sample(path.parent)
    assert caught.value.name == str(path)
    return checked_message(caught.value, path)


def test_pages_are_not_dropped_in_silence(tmp_path, rng):
    first, second = Image.fromarray(rgb(rng)), Image.fromarray(rgb(rng))
    first.save(tmp_path / "1.tif", save_all=True, append_images=[second])
    assert "2 pages" in bad_sample(tmp_path / "1.tif")


@pytest.mark.parametrize("suffix", [*LOSSLESS, ".jpg"])
def test_cut_off_images_are_bad_samples(tmp_path, rng, suffix):
    path = tmp_path / f"1{suffix}"
    save_image(path, rgb(rng, side=40))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "cannot be used: it is not a readable image (" in bad_sample(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"hello", "it is not an image that can be read, or it is damaged"),
        (b"\x89PNG\r\n\x1a\n", "it is not an image that can be read, or it is damaged"),
    ],
)
def test_files_that_are_no_images_are_bad_samples(tmp_path, content, reason):
    (tmp_path / "1.png").write_bytes(content)
    assert bad_sample(tmp_path / "1.png").endswith(f"cannot be used: {reason}")


def test_a_file_that_vanished_is_a_bad_sample(tmp_path, rng):
    (tmp_path / "1.png").symlink_to(tmp_path / "nowhere")
    message = bad_sample(tmp_path / "1.png")
    assert message.count(str(tmp_path)) == 1
    assert "it does not exist" in message


@pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("suffix", [*LOSSLESS, ".jpg"])
def test_damaged_images_give_pixels_or_a_bad_sample(tmp_path, rng, suffix):
    """A flipped byte may change the pixels, but nothing except a BadSampleError comes out."""
    path = tmp_path / f"1{suffix}"
    save_image(path, rgb(rng, side=12))
    whole = path.read_bytes()
    (split,) = open_source(str(tmp_path)).splits.values()
    refused = 0
    for _ in range(150):
        content = bytearray(whole)
        content[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(content)
        try:
            split.read(0)
        except BadSampleError:
            refused += 1
    assert refused
