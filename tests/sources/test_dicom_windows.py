"""DICOM: windows and tables of made-up files, as the standard writes them."""

import numpy as np
import pytest

from dicom_files import STORED, bundled, frames_of, full_range, only_frame, save, windowed
from mole.sources.opening import open_source

pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
from pydicom.dataset import Dataset  # noqa: E402


def table(values, *, first=0, bits=16):
    item = Dataset()
    item.add_new(0x00283002, "SS", [len(values), first, bits])
    item.add_new(0x00283006, "US", list(values))
    return item


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


# A window that the provider chooses


def seen(path, **options):
    (split,) = open_source(path, **options).splits.values()
    return split.read(0).values


CT = np.array([[0, 984, 1024, 1064], [1224, 2047, 3000, 4095]], dtype=np.uint16)  # Hounsfield units + 1024
HEADER = {"RescaleSlope": 1, "RescaleIntercept": -1024, "BitsStored": 12, "HighBit": 11,
          "WindowCenter": 1000, "WindowWidth": 4000}  # fmt: skip


def test_the_chosen_window_takes_the_place_of_the_header_s(tmp_path):
    path = save(tmp_path / "1.dcm", CT, **HEADER, VOILUTFunction="SIGMOID")
    units = CT - 1024.0
    np.testing.assert_array_equal(seen(path, window=(40, 400)), windowed(units, 40, 400))
    np.testing.assert_array_equal(seen(path, window=(40, 400))[0], [0, 77, 102, 128])
    assert not np.array_equal(seen(path), seen(path, window=(40, 400)))


def test_sixteen_bits_keep_every_hounsfield_unit(tmp_path):
    every = np.arange(4096, dtype=np.uint16).reshape(64, 64)
    path = save(tmp_path / "1.dcm", every, **HEADER)
    pixels = seen(path, window=(1024, 4096), bits=16)  # from -1024 to 3071
    assert pixels.dtype == np.uint16
    np.testing.assert_array_equal(pixels, np.rint(every / 4095 * 65535))
    np.testing.assert_array_equal(np.rint(pixels / 65535 * 4095) - 1024, every - 1024.0)
    assert len(np.unique(seen(path, window=(1024, 4096)))) == 256  # 8 bits do not


@pytest.mark.parametrize(
    ("stored", "header", "ends"),
    [
        (CT, HEADER, (-1024, 3071)),
        (CT.astype(np.int16), {**HEADER, "BitsStored": 16, "HighBit": 15}, (-32768 - 1024, 32767 - 1024)),
        (CT, {**HEADER, "RescaleSlope": -2, "RescaleIntercept": 5}, (5 - 2 * 4095, 5)),
        (CT, {"BitsStored": 16, "HighBit": 15}, (0, 65535)),
    ],
)
def test_without_a_window_values_of_all_files_compare(tmp_path, stored, header, ends):
    path = save(tmp_path / "1.dcm", stored, **header)
    units = stored.astype(np.float64) * header.get("RescaleSlope", 1) + header.get("RescaleIntercept", 0)
    expected = (units - ends[0]) / (ends[1] - ends[0])
    np.testing.assert_array_equal(seen(path, window="none", bits=16), np.rint(expected * 65535))
    np.testing.assert_array_equal(seen(path, window="none"), np.rint(expected * 255))


def test_no_window_through_a_table_of_the_modality(tmp_path):
    stored = np.array([[0, 1, 2, 3]], dtype=np.uint16)
    path = save(tmp_path / "a.dcm", stored, ModalityLUTSequence=[table([5, 0, 10, 255], bits=8)])
    np.testing.assert_array_equal(seen(path, window="none"), [[5, 0, 10, 255]])


def test_monochrome1_is_inverted_whatever_the_window(tmp_path):
    path = save(tmp_path / "1.dcm", CT, **HEADER, PhotometricInterpretation="MONOCHROME1")
    for options, top in (({}, 255), ({"window": (40, 400)}, 255), ({"window": "none", "bits": 16}, 65535)):
        plain = save(tmp_path / "2.dcm", CT, **HEADER)
        np.testing.assert_array_equal(seen(path, **options), top - seen(plain, **options))


def test_colours_in_sixteen_bits():
    path = bundled("SC_rgb_rle.dcm")
    np.testing.assert_array_equal(seen(path, bits=16), seen(path).astype(np.uint16) * 257)


def test_another_window_makes_another_source(tmp_path):
    path = save(tmp_path / "1.dcm", CT, **HEADER)
    prints = [
        open_source(path, **options).fingerprint
        for options in ({}, {"window": (40, 400)}, {"window": (40, 401)}, {"window": "none"}, {"bits": 16})
    ]
    assert len(set(prints)) == len(prints)
