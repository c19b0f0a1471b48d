"""DICOM: pydicom's sample files and made-up ones, against pixels computed from their bytes."""

import io
import os
import pickle
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mole.errors import MissingExtraError, SourceError
from mole.sources.opening import open_source
from mole.sources.source import BadSampleError

pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
from pydicom.dataset import Dataset, FileMetaDataset  # noqa: E402
from pydicom.encaps import generate_frames  # noqa: E402
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian  # noqa: E402

BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
MORE = Path(os.environ.get("MOLE_DICOM_SAMPLES", "no such file"))  # a .tar of further samples
PATIENT = "Doe^Jane"


def bundled(name):
    path = BUNDLED / name
    if not path.exists():
        pytest.skip(f"this pydicom comes without {name}")
    return path


def further(name, folder):
    if not MORE.exists():
        pytest.skip("MOLE_DICOM_SAMPLES names no .tar of further samples")
    with tarfile.open(MORE) as archive:
        (folder / name).write_bytes(archive.extractfile(f"dicom/{name}").read())
    return folder / name


def frames_of(path):
    (split,) = open_source(str(path)).splits.values()
    return [split.read(index) for index in range(len(split))]


def only_frame(path):
    (sample,) = frames_of(path)
    assert sample.values.dtype == np.uint8
    assert sample.axes == ("hw" if sample.values.ndim == 2 else "hwc")
    return sample.values


def windowed(values, centre, width):
    """PS3.3, C.11.2.1.2.1, as its pseudo-code stands there."""
    low, high = centre - 0.5 - (width - 1) / 2, centre - 0.5 + (width - 1) / 2
    between = ((values - (centre - 0.5)) / (width - 1) + 0.5) * 255
    return np.rint(np.where(values <= low, 0, np.where(values > high, 255, between))).astype(np.uint8)


def full_range(values):
    values = values.astype(np.float64)
    return np.rint((values - values.min()) / (values.max() - values.min()) * 255).astype(np.uint8)


def raw(path, dtype, shape):
    """Stored values straight from the bytes at a file's end, where uncompressed pixels lie."""
    content = path.read_bytes()
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    start = content.rindex(b"\xe0\x7f\x10\x00")  # the tag of pixel data
    start += 12 if content[start + 4 : start + 6] in (b"OW", b"OB") else 8
    return np.frombuffer(content[start : start + size], dtype=dtype).reshape(shape)


def by_pillow(path):
    """The first compressed frame, decoded by another decoder than pydicom's."""
    dataset = pydicom.dcmread(path)
    frame = next(generate_frames(dataset.PixelData, number_of_frames=int(dataset.get("NumberOfFrames", 1))))
    return np.asarray(Image.open(io.BytesIO(frame)))


def deep(path, bits):
    """The same for grey values of more than 8 bits, which Pillow moves to the top of its 16."""
    return by_pillow(path) >> (16 - bits)


# pydicom's samples


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


# Made-up files


def save(path, stored, **elements):
    """A CT image with the given values, one frame or several, and header elements."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = CTImageStorage
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = "1.2.3"
    dataset.PatientName, dataset.PatientID = PATIENT, "4711"
    dataset.Rows, dataset.Columns = stored.shape[-2:]
    if stored.ndim == 3:
        dataset.NumberOfFrames = len(stored)
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = stored.dtype.itemsize * 8
    dataset.HighBit, dataset.PixelRepresentation = dataset.BitsStored - 1, int(stored.dtype.kind == "i")
    dataset.PixelData = stored.tobytes()
    for name, value in elements.items():
        setattr(dataset, name, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    dataset.save_as(path, enforce_file_format=True)
    return path


def table(values, *, first=0, bits=16):
    item = Dataset()
    item.add_new(0x00283002, "SS", [len(values), first, bits])
    item.add_new(0x00283006, "US", list(values))
    return item


STORED = np.arange(-8, 8, dtype=np.int16).reshape(4, 4)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (None, lambda x: (x - 0.5) / 7 + 0.5),
        ("LINEAR", lambda x: (x - 0.5) / 7 + 0.5),
        ("LINEAR_EXACT", lambda x: (x - 1) / 8 + 0.5),
        ("SIGMOID", lambda x: 1 / (1 + np.exp(-4 * (x - 1) / 8))),
    ],
)
def test_kinds_of_windows(tmp_path, function, expected):
    kind = {} if function is None else {"VOILUTFunction": function}
    path = save(tmp_path / "1.dcm", STORED, WindowCenter=1, WindowWidth=8, **kind)
    brightness = np.clip(expected(STORED.astype(np.float64)), 0, 1)
    np.testing.assert_array_equal(only_frame(path), np.rint(255 * brightness))


def test_a_window_one_wide_is_a_threshold(tmp_path):
    path = save(tmp_path / "1.dcm", STORED, WindowCenter=2, WindowWidth=1)
    np.testing.assert_array_equal(only_frame(path), 255 * (STORED > 1.5))


def test_the_window_is_in_rescaled_units(tmp_path):
    elements = {"RescaleSlope": 10, "RescaleIntercept": 3, "WindowCenter": 3, "WindowWidth": 101}
    path = save(tmp_path / "1.dcm", STORED, **elements)
    np.testing.assert_array_equal(only_frame(path), windowed(STORED * 10.0 + 3, 3, 101))


def test_an_empty_window_is_none(tmp_path):
    path = save(tmp_path / "1.dcm", STORED, WindowCenter=None, WindowWidth=None)
    np.testing.assert_array_equal(only_frame(path), full_range(STORED))


def test_one_value_everywhere_is_black(tmp_path):
    assert not only_frame(save(tmp_path / "1.dcm", np.full((4, 4), 7, np.uint16))).any()


def test_tables_for_modality_and_display(tmp_path):
    stored = np.array([[0, 1, 2, 3]], dtype=np.uint16)
    modality = save(tmp_path / "a.dcm", stored, ModalityLUTSequence=[table([5, 0, 10, 2])])
    np.testing.assert_array_equal(only_frame(modality), np.rint(np.array([[5, 0, 10, 2]]) * 25.5))
    display = save(tmp_path / "b.dcm", stored, VOILUTSequence=[table([0, 51, 102, 255], bits=8)])
    np.testing.assert_array_equal(only_frame(display), [[0, 51, 102, 255]])


def group(**sequences):
    item = Dataset()
    for name, elements in sequences.items():
        inner = Dataset()
        for key, value in elements.items():
            setattr(inner, key, value)
        setattr(item, name, [inner])
    return item


def test_each_frame_may_have_a_window_of_its_own(tmp_path):
    stored = np.stack([STORED, STORED])
    shared = group(PixelValueTransformationSequence={"RescaleSlope": 2, "RescaleIntercept": 1})
    each = [group(FrameVOILUTSequence={"WindowCenter": c, "WindowWidth": w}) for c, w in ((0, 9), (4, 21))]
    elements = {"SharedFunctionalGroupsSequence": [shared], "PerFrameFunctionalGroupsSequence": each}
    path = save(tmp_path / "1.dcm", stored, **elements)
    first, second = frames_of(path)
    np.testing.assert_array_equal(first.values, windowed(STORED * 2.0 + 1, 0, 9))
    np.testing.assert_array_equal(second.values, windowed(STORED * 2.0 + 1, 4, 21))


# Folders


def test_class_and_split_folders_and_frames(tmp_path):
    one, three = np.ones((2, 2), np.uint8), np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    save(tmp_path / "train" / "ill" / "scan", three)  # known by its first bytes
    save(tmp_path / "train" / "well" / "1.DCM", one)
    save(tmp_path / "test" / "ill" / "2.dcm", one)
    source = open_source(str(tmp_path))
    assert (source.kind, source.classes) == ("DICOM", ("ill", "well"))
    train = source.splits["train"]
    assert train.labels.tolist() == [0, 0, 0, 1]
    assert train.extra == {"file_name": ["scan"] * 3 + ["1.DCM"], "frame": [0, 1, 2, 0]}
    assert train.name_of(2) == f"{tmp_path}/train/ill/scan (frame 2)"
    assert source.splits["test"].labels.tolist() == [0]
    np.testing.assert_array_equal(train.read(2).values, full_range(three[2]))


def test_a_flat_folder_and_a_single_file_without_a_suffix(tmp_path):
    save(tmp_path / "scan", STORED)
    for path in (tmp_path, tmp_path / "scan"):
        source = open_source(str(path))
        assert (source.count, source.classes, source.splits["train"].labels) == (1, None, None)
        assert source.splits["train"].name_of(0) == f"{tmp_path}/scan (frame 0)"


def test_files_without_images_are_left_out(tmp_path):
    for name in ("reportsi.dcm", "rtplan.dcm", "waveform_ecg.dcm"):
        shutil.copy(bundled(name), tmp_path)
    shutil.copy(bundled("dicomdirtests/DICOMDIR"), tmp_path / "DICOMDIR")
    (tmp_path / "notes.txt").write_text("about these files" * 50)
    with pytest.raises(SourceError, match="has DICOM files without images"):
        open_source(str(tmp_path))
    save(tmp_path / "scan.dcm", STORED)
    assert open_source(str(tmp_path)).count == 1


def test_other_images_in_between_are_refused(tmp_path):
    save(tmp_path / "1.dcm", STORED)
    Image.new("L", (2, 2)).save(tmp_path / "2.png")
    with pytest.raises(SourceError, match=f"{tmp_path} holds DICOM files and other images"):
        open_source(str(tmp_path))


def test_nothing_of_a_header_is_kept(tmp_path):
    path = save(tmp_path / "1.dcm", STORED)
    source = open_source(str(tmp_path))
    sample = source.splits["train"].read(0)
    assert PATIENT.encode() in path.read_bytes()
    assert PATIENT.encode() not in pickle.dumps((source, sample))


def bad_sample(path):
    (split,) = open_source(str(path)).splits.values()
    with pytest.raises(BadSampleError) as caught:
        split.read(0)
    message = str(caught.value)
    assert message.startswith(f"{path} (frame 0) cannot be used: it is not a readable DICOM image (")
    assert "\n" not in message
    return message


def test_a_cut_off_file():
    bad_sample(bundled("MR_truncated.dcm"))


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\0" * 128 + b"DICM", b"\0" * 128 + b"DICM" + b"\xff" * 99]
)
def test_files_that_are_no_dicom(tmp_path, content):
    (tmp_path / "1.dcm").write_bytes(content)
    bad_sample(tmp_path / "1.dcm")


@pytest.mark.parametrize(
    "elements",
    [
        {"WindowCenter": 1, "WindowWidth": 0},
        {"WindowCenter": 1, "WindowWidth": 5, "VOILUTFunction": "CUBIC"},
        {"PhotometricInterpretation": "CIELAB"},
        {"PhotometricInterpretation": "PALETTE COLOR"},
        {"Rows": 400},
    ],
)
def test_images_that_cannot_be_shown(tmp_path, elements):
    bad_sample(save(tmp_path / "1.dcm", STORED, **elements))


def test_frames_that_are_missing_at_the_end(tmp_path):
    path = save(tmp_path / "1.dcm", STORED, NumberOfFrames=2)
    split = open_source(str(path)).splits["train"]
    np.testing.assert_array_equal(split.read(0).values, full_range(STORED))
    with pytest.raises(
        BadSampleError, match=r"1.dcm \(frame 1\) cannot be used: it is not a readable DICOM"
    ):
        split.read(1)


def test_a_file_that_vanished_is_a_bad_sample(tmp_path):
    path = save(tmp_path / "1.dcm", STORED)
    split = open_source(str(path)).splits["train"]
    path.unlink()
    with pytest.raises(
        BadSampleError, match=r"1.dcm \(frame 0\) cannot be used: cannot be read: No such file"
    ):
        split.read(0)


def test_a_missing_pydicom_is_named(tmp_path, monkeypatch):
    save(tmp_path / "1.dcm", STORED)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'morphed-learning\[dicom\]'"):
        open_source(str(tmp_path))
