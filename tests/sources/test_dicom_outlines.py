"""DICOM headers: what they tell is what decoding gives, and a file that is cut off is never trusted."""

import shutil

import numpy as np
import pytest

from dicom_files import BUNDLED, bundled, save
from mole.sources.inspection import inspect
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError, Outline

pytest.importorskip("pydicom", reason="needs the extra 'dicom'")

NAMES = [
    "MR_small.dcm", "MR_small_RLE.dcm", "MR_small_bigendian.dcm", "MR_small_jp2klossless.dcm",
    "MR_small_jpeg_ls_lossless.dcm", "CT_small.dcm", "examples_overlay.dcm", "examples_palette.dcm",
    "examples_rgb_color.dcm", "image_dfl.dcm",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NAMES if (BUNDLED / name).exists()])
def test_a_header_tells_what_decoding_gives(name):
    split = open_source(str(bundled(name))).splits["train"]
    sample, outline = split.read(0), split.outline(0)
    expected = Outline(sample.values.shape, sample.axes, sample.values.dtype.name)
    assert outline == expected or (outline is None and name == "image_dfl.dcm")


@pytest.mark.parametrize("name", ["MR_small.dcm", "MR_small_RLE.dcm", "MR_small_jp2klossless.dcm"])
def test_a_file_that_is_cut_off_is_never_taken_for_whole(tmp_path, name):
    content = bundled(name).read_bytes()
    for share in (0.5, 0.9, 0.999):
        (tmp_path / "cut.dcm").write_bytes(content[: int(share * len(content))])
        split = open_source(str(tmp_path / "cut.dcm")).splits["train"]
        try:
            split.read(0)
        except BadSampleError:
            assert split.outline(0) is None


def test_a_folder_of_scans_is_judged_at_once(tmp_path):
    for index in range(3):
        save(tmp_path / f"{index}.dcm", np.arange(16, dtype=np.uint8).reshape(4, 4))
    save(tmp_path / "frames.dcm", np.arange(40, dtype=np.uint8).reshape(2, 4, 5))
    shutil.copy(tmp_path / "0.dcm", tmp_path / "cut.dcm")
    (tmp_path / "cut.dcm").write_bytes((tmp_path / "cut.dcm").read_bytes()[:-9])
    found = inspect(open_source(str(tmp_path)), Preparation((1, 4, 4)))
    assert (found.samples, found.bad) == (6, 3)
    said = str(found.error())
    assert "cut.dcm (frame 0): it is not a readable DICOM image (" in said
    assert "2 images" in said
    assert "the first is 1x4x5 and the layer takes 1x4x4: give resize=" in said
