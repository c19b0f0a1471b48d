"""DICOM: folders of files and frames, and what cannot be read."""

import pickle
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from dicom_files import PATIENT, STORED, bundled, full_range, save
from mole.errors import MissingExtraError, SourceError
from mole.sources.opening import open_source
from mole.sources.source import BadSampleError


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
    assert "pixel data is less than expected (8130 vs 8192 bytes)" in bad_sample(
        bundled("MR_truncated.dcm")
    )


NO_START, NO_PIXELS = "it does not begin as DICOM files do", "it does not say how its pixels are stored"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", NO_START),
        (b"hello", NO_START),
        (b"\0" * 128 + b"DICM", NO_PIXELS),
        (b"\0" * 128 + b"DICM" + b"\xff" * 99, "End of file reached"),  # a warning, which is an error here
    ],
)
def test_files_that_are_no_dicom(tmp_path, content, reason):
    (tmp_path / "1.dcm").write_bytes(content)
    assert reason in bad_sample(tmp_path / "1.dcm")


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ({"WindowCenter": 1, "WindowWidth": 0}, "its window is 0 wide"),
        ({"WindowCenter": 1, "WindowWidth": 5, "VOILUTFunction": "CUBIC"}, "of kind CUBIC"),
        ({"PhotometricInterpretation": "CIELAB"}, "'CIELAB'"),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, "Palette"),
        ({"Rows": 400}, "less than expected (32 vs 3200 bytes)"),
    ],
)
def test_images_that_cannot_be_shown(tmp_path, elements, reason):
    assert reason in bad_sample(save(tmp_path / "1.dcm", STORED, **elements))


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
        BadSampleError, match=r"1.dcm \(frame 0\) cannot be used: cannot be read: it does not exist"
    ):
        split.read(0)


def test_a_missing_pydicom_is_named(tmp_path, monkeypatch):
    save(tmp_path / "1.dcm", STORED)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    monkeypatch.delitem(sys.modules, "mole.sources.dicom_pixels", raising=False)
    monkeypatch.delattr("mole.sources.dicom_pixels", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[dicom\]'"):
        open_source(str(tmp_path))
