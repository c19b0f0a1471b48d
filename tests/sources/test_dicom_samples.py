"""DICOM: pydicom's sample files against pixels computed from their bytes."""

import numpy as np
import pytest

from dicom_files import (
    BUNDLED,
    bundled,
    by_pillow,
    deep,
    frames_of,
    full_range,
    further,
    only_frame,
    raw,
    windowed,
)

pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")

MR = windowed(raw(BUNDLED / "MR_small.dcm", "<i2", (64, 64)), 600, 1600)


@pytest.mark.parametrize(
    "name",
    [
        "MR_small.dcm",
        "MR_small_implicit.dcm",
        "MR_small_bigendian.dcm",
        "MR_small_RLE.dcm",
        "MR_small_jp2klossless.dcm",
        "MR_small_jpeg_ls_lossless.dcm",
    ],
)
def test_every_transfer_syntax_gives_the_same_pixels(name):
    pixels = only_frame(bundled(name))
    assert np.ptp(pixels) > 100
    np.testing.assert_array_equal(pixels, MR)


@pytest.mark.filterwarnings("ignore:The pixel data is 8320 bytes long:UserWarning")
def test_padding_behind_the_pixels_is_no_matter():
    np.testing.assert_array_equal(only_frame(bundled("MR_small_padded.dcm")), MR)


def test_rescaled_values_without_a_window_get_their_full_range():
    path = bundled("CT_small.dcm")
    np.testing.assert_array_equal(only_frame(path), full_range(raw(path, "<i2", (128, 128)) - 1024.0))


def test_monochrome1_is_inverted(tmp_path):
    dataset = pydicom.dcmread(bundled("MR_small.dcm"))
    dataset.PhotometricInterpretation = "MONOCHROME1"
    dataset.save_as(tmp_path / "1.dcm")
    np.testing.assert_array_equal(only_frame(tmp_path / "1.dcm"), 255 - MR)


def test_monochrome1_in_jpeg_2000(tmp_path):
    path = further("RG3_J2KR.dcm", tmp_path)
    np.testing.assert_array_equal(only_frame(path), 255 - windowed(deep(path, 10), 550, 1024))


def test_jpeg_2000_with_rescaling_and_window(tmp_path):
    path = further("MR2_J2KR.dcm", tmp_path)
    values = deep(path, 12) * 3.774114 + 0.000061
    np.testing.assert_array_equal(only_frame(path), windowed(values, 1000, 2000))


def test_the_first_of_several_windows_counts():
    path = bundled("examples_overlay.dcm")
    np.testing.assert_array_equal(only_frame(path), windowed(raw(path, "<u2", (300, 484)), 450, 790))


def test_a_deflated_file():
    path = bundled("image_dfl.dcm")
    stored = np.frombuffer(pydicom.dcmread(path).PixelData, np.uint8).reshape(512, 512)
    np.testing.assert_array_equal(only_frame(path), full_range(stored))


def test_every_frame_is_a_sample():
    path = bundled("rtdose.dcm")
    frames = frames_of(path)
    stored = raw(path, "<u4", (15, 10, 10))
    assert len(frames) == 15
    for frame, values in zip(frames, stored, strict=True):
        np.testing.assert_array_equal(frame.values, full_range(values))


@pytest.mark.parametrize("name", ["rtdose_expb.dcm", "rtdose_rle.dcm"])
def test_frames_in_other_transfer_syntaxes(name):
    for frame, same in zip(frames_of(bundled(name)), frames_of(bundled("rtdose.dcm")), strict=True):
        np.testing.assert_array_equal(frame.values, same.values)


def test_one_bit_a_pixel():
    path = bundled("liver_1frame.dcm")
    bits = np.unpackbits(raw(path, np.uint8, (512 * 512 // 8,)), bitorder="little").reshape(512, 512)
    np.testing.assert_array_equal(only_frame(path), bits * 255)


# Colours


def test_rgb_as_it_is_stored():
    path = bundled("examples_rgb_color.dcm")
    planar = int(pydicom.dcmread(path).PlanarConfiguration)
    shape = (3, 240, 320) if planar else (240, 320, 3)
    stored = raw(path, np.uint8, shape)
    np.testing.assert_array_equal(only_frame(path), stored.transpose(1, 2, 0) if planar else stored)


@pytest.mark.parametrize(("bits", "name"), [(16, "SC_rgb_rle_16bit.dcm"), (32, "SC_rgb_rle_32bit.dcm")])
def test_deeper_colours_become_eight_bits(bits, name):
    np.testing.assert_array_equal(only_frame(bundled(name)), only_frame(bundled("SC_rgb_rle.dcm")))
    assert pydicom.dcmread(bundled(name)).BitsStored == bits


def test_two_frames_in_colour():
    first, second = frames_of(bundled("SC_rgb_rle_2frame.dcm"))
    np.testing.assert_array_equal(first.values, only_frame(bundled("SC_rgb_rle.dcm")))
    np.testing.assert_array_equal(second.values, 255 - first.values)


def rgb_of(y, cb, cr):
    """PS3.3, C.7.6.3.1.2, solved for red, green and blue."""
    y, cb, cr = (channel.astype(np.float64) for channel in (y, cb - 128.0, cr - 128.0))
    return np.stack([y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb], axis=-1).clip(
        0, 255
    )


def test_ybr_422_becomes_rgb():
    path = bundled("SC_ybr_full_422_uncompressed.dcm")
    pairs = raw(path, np.uint8, (100, 50, 4))  # two pixels share their colour: y y cb cr
    y = pairs[..., :2].reshape(100, 100)
    cb, cr = (np.repeat(pairs[..., channel], 2, axis=1) for channel in (2, 3))
    assert np.abs(only_frame(path) - rgb_of(y, cb, cr)).max() <= 1


@pytest.mark.parametrize("name", ["SC_rgb_dcmtk_+eb+cy+n1.dcm", "SC_rgb_jpeg_dcmtk.dcm"])
def test_jpeg_in_ybr_becomes_rgb(name):
    pixels = only_frame(bundled(name))
    assert np.abs(pixels.astype(int) - by_pillow(bundled(name))).max() <= 3
    np.testing.assert_allclose(pixels[5, 50], [255, 0, 0], atol=3)  # its first bar is red


def test_many_frames_of_jpeg():
    path = bundled("examples_ybr_color.dcm")
    frames = frames_of(path)
    assert [frame.values.shape for frame in frames] == [(240, 320, 3)] * 30
    difference = np.abs(frames[0].values.astype(int) - by_pillow(path))
    assert np.median(difference) <= 1
    assert difference.mean() < 2


def test_jpeg_2000_in_colour():
    path = bundled("examples_jpeg2k.dcm")
    np.testing.assert_array_equal(only_frame(path), by_pillow(path))


def looked_up(path, stored):
    dataset = pydicom.dcmread(path)
    channels = []
    for name in ("Red", "Green", "Blue"):
        entries, first, bits = dataset[f"{name}PaletteColorLookupTableDescriptor"].value
        table = np.frombuffer(dataset[f"{name}PaletteColorLookupTableData"].value, f"<u{bits // 8}")
        assert (first, len(table)) == (0, entries)
        channels.append(np.rint(table[stored] * (255 / (2**bits - 1))))
    return np.stack(channels, axis=-1)


def test_palettes_become_rgb():
    path = bundled("examples_palette.dcm")
    np.testing.assert_array_equal(only_frame(path), looked_up(path, raw(path, np.uint8, (350, 800))))


def test_a_palette_in_run_lengths(tmp_path):
    path = further("OBXXXX1A_rle.dcm", tmp_path)
    stored = pydicom.dcmread(path).pixel_array
    np.testing.assert_array_equal(only_frame(path), looked_up(path, stored))
