"""DICOM: windows and tables of made-up files, as the standard writes them."""

import numpy as np
import pytest

from dicom_files import STORED, frames_of, full_range, only_frame, save, windowed

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
