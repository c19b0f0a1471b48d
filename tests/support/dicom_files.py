"""DICOM files for tests: those that come with pydicom, made-up ones, and pixels computed from bytes."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mole.sources.opening import open_source

pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
from pydicom.dataset import Dataset, FileMetaDataset  # noqa: E402
from pydicom.encaps import generate_frames  # noqa: E402
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian  # noqa: E402

BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
MORE = Path(os.environ.get("MOLE_DICOM_SAMPLES", "no such file"))  # a .tar of further samples
PATIENT_ID = "PATIENT-4711-0815"
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


STORED = np.arange(-8, 8, dtype=np.int16).reshape(4, 4)


def save(path, stored, **elements):
    """A CT image with the given values, one frame or several, and header elements."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = CTImageStorage
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = "1.2.3"
    dataset.PatientName, dataset.PatientID = PATIENT, PATIENT_ID
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
