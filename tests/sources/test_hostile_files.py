"""Data that was made to harm: what starts a program, ends the process, or fills the memory is refused."""

import gzip
import io
import random
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from mole.errors import SourceError
from mole.sources.opening import open_source
from mole.sources.source import BadSampleError
from source_files import idx_bytes, refusal, rgb

EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
%%EndComments
(a program) print
%%EOF
"""


def bad_sample(path):
    with pytest.raises(BadSampleError) as caught:
        open_source(str(path)).splits["train"].read(0)
    return str(caught.value)


def test_postscript_under_another_name_starts_nothing(tmp_path):
    (tmp_path / "1.png").write_bytes(EPS)
    assert Image.open(io.BytesIO(EPS)).format == "EPS"  # so Pillow would take it for what it is
    assert "it is not an image that can be read" in bad_sample(tmp_path)


@pytest.mark.parametrize("kind", ["GIF", "PPM", "TGA", "ICO", "PCX", "SGI"])
def test_other_formats_under_another_name(tmp_path, rng, kind):
    Image.fromarray(rgb(rng)).save(tmp_path / "image", kind)
    (tmp_path / "image").rename(tmp_path / "1.png")
    assert "not an image that can be read" in bad_sample(tmp_path)


def png_of(width, height):
    """A PNG file of this size, as its header says; there are no pixels behind it."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [header, b"IDAT" + zlib.compress(bytes(100)), b"IEND"]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks
    )


def test_a_file_of_a_terabyte(tmp_path):
    with (tmp_path / "1.png").open("wb") as file:
        file.truncate(1 << 40)  # it takes no room on the disk
    assert "larger than 512 MiB" in bad_sample(tmp_path)


@pytest.mark.parametrize("side", [8_200, 10_000, 60_000])
def test_an_image_of_billions_of_pixels(tmp_path, side):
    """Refused in our words, whether Pillow says nothing, warns, or refuses it too."""
    (tmp_path / "1.png").write_bytes(png_of(side, side))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "more than 64 million pixels: cut it into parts" in bad_sample(tmp_path)


def test_a_gzip_bomb(tmp_path):
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as file:
        file.write(struct.pack(">HBB3I", 0, 8, 3, 1 << 10, 1 << 10, 1 << 10))
        file.write(bytes(1 << 20))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(packed.getvalue())
    assert "not an idx file" in refusal(tmp_path, named=tmp_path / "train-images-idx3-ubyte.gz")


def test_more_behind_an_idx_file_than_it_says_is_not_unpacked(tmp_path):
    array = np.zeros((2, 4, 4), np.uint8)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(array)))
    assert open_source(str(tmp_path)).count == 2
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(array) + bytes(1)))
    assert "cut off" in refusal(tmp_path, named=tmp_path / "train-images-idx3-ubyte.gz")


def test_a_zip_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr("mole.limits.ALWAYS_UNPACKED", 1 << 20)
    np.savez_compressed(tmp_path / "data.npz", images=np.zeros((8, 1 << 10, 1 << 10), np.uint8))
    assert (tmp_path / "data.npz").stat().st_size < 10_000
    assert "far more than images do" in refusal(tmp_path / "data.npz")
    np.savez(tmp_path / "data.npz", images=np.zeros((8, 1 << 10, 1 << 10), np.uint8))
    assert open_source(str(tmp_path / "data.npz")).count == 8


def test_an_array_that_says_it_is_larger_than_its_bytes(tmp_path):
    np.savez(tmp_path / "data.npz", images=np.zeros((8, 16, 16), np.uint8))
    content = (tmp_path / "data.npz").read_bytes()
    changed = content.replace(b"'shape': (8, 16, 16), }      ", b"'shape': (800000, 1600, 16), }")
    assert changed != content
    (tmp_path / "data.npz").write_bytes(changed)
    refusal(tmp_path / "data.npz")


def test_labels_that_number_no_classes(tmp_path):
    np.savez(tmp_path / "data.npz", images=np.zeros((2, 4, 4), np.uint8), labels=np.array([0, 10**9]))
    assert "number the classes from 0" in refusal(tmp_path / "data.npz")


def saved_dataset(folder):
    table = pa.table({"image": [b"abc" * 9] * 20, "label": list(range(20)), "site": ["ab", "c"] * 10})
    with (
        pa.OSFile(str(folder / "data.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    return (folder / "data.arrow").read_bytes()


@pytest.mark.parametrize("packing", ["lz4", "zstd"])
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_packed_batches_of_a_saved_data_set(tmp_path, packing, kind):
    """Zeros shrink to a ten-thousandth with zstd; `datasets` never packs."""
    table = pa.table({"image": [bytes(10_000)] * 20, "site": pa.array(["ab", "c"] * 10, kind)})
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    for options in (pa.ipc.IpcWriteOptions(), pa.ipc.IpcWriteOptions(compression=packing)):
        path = str(tmp_path / "data.arrow")
        with (
            pa.OSFile(path, "wb") as sink,
            pa.ipc.new_stream(sink, table.schema, options=options) as writer,
        ):
            writer.write_table(table)
        if options.compression is None:
            assert open_source(str(tmp_path)).count == 20
    assert "can unpack to anything" in refusal(tmp_path, named=tmp_path / "data.arrow")


READ_ALL = """
import sys
from mole.sources.opening import open_source
from mole.errors import MoleError
try:
    split = open_source(sys.argv[1]).splits["train"]
    [split.table[name].to_pylist() for name in split.table.column_names]
except MoleError as error:
    print(error)
"""


def test_wrong_offsets_in_a_saved_data_set(tmp_path):
    """In a process of its own: whoever believes such a file dies of it."""
    content = bytearray(saved_dataset(tmp_path))
    offsets = struct.pack("<3i", 0, 27, 54)
    at = content.index(offsets)
    content[at + 4 : at + 8] = struct.pack("<i", 1 << 30)
    (tmp_path / "data.arrow").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "data.arrow is not a readable Arrow file" in done.stdout


def test_damaged_columns_are_refused_or_harmless(tmp_path):
    content, rng, refused = saved_dataset(tmp_path), random.Random(5), 0
    for _ in range(60):
        broken = bytearray(content)
        at = rng.randrange(len(broken) - 8)
        broken[at : at + 4] = struct.pack("<i", rng.choice((-1, 0, 1 << 30, 77)))
        (tmp_path / "data.arrow").write_bytes(broken)
        try:
            split = open_source(str(tmp_path)).splits["train"]
            assert len(split.table["image"].to_pylist()) == len(split)
        except SourceError:
            refused += 1
    assert 0 < refused < 60


@pytest.mark.parametrize(
    "state", ["[]", '{"_data_files": 5}', '{"_data_files": [5]}', '{"_data_files": [{}]}', "["]
)
def test_a_saved_data_set_with_a_broken_list_of_files(tmp_path, state):
    saved_dataset(tmp_path)
    (tmp_path / "state.json").write_text(state)
    assert "save the data set again" in refusal(tmp_path, named=tmp_path / "state.json")


def scan_bytes(**changes):
    pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

    from dicom_files import Dataset, FileMetaDataset

    scan = Dataset()
    scan.file_meta = FileMetaDataset()
    scan.file_meta.TransferSyntaxUID = changes.pop("syntax", ExplicitVRLittleEndian)
    scan.file_meta.MediaStorageSOPClassUID = scan.SOPClassUID = CTImageStorage
    scan.file_meta.MediaStorageSOPInstanceUID = scan.SOPInstanceUID = "1.2.3"
    scan.PhotometricInterpretation, scan.SamplesPerPixel = "MONOCHROME2", 1
    scan.Rows = scan.Columns = 4
    scan.BitsAllocated = scan.BitsStored = 8
    scan.HighBit, scan.PixelRepresentation = 7, 0
    scan.PixelData = bytes(range(16))
    for name, value in changes.items():
        setattr(scan, name, value)
    sink = io.BytesIO()
    pydicom.dcmwrite(sink, scan, enforce_file_format=True)
    return sink.getvalue()


def test_two_billion_frames_in_a_small_file(tmp_path):
    (tmp_path / "scan.dcm").write_bytes(scan_bytes(NumberOfFrames=(1 << 31) - 1))
    assert "says that it has 2147483647 frames" in refusal(tmp_path / "scan.dcm")


def test_a_scan_larger_than_any(tmp_path):
    (tmp_path / "scan.dcm").write_bytes(scan_bytes(Rows=60_000, Columns=60_000))
    assert "more than 64 million pixels" in bad_sample(tmp_path / "scan.dcm")


def test_a_deflated_scan_is_read_and_a_bomb_is_not(tmp_path, monkeypatch):
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    path = tmp_path / "scan.dcm"
    path.write_bytes(scan_bytes(syntax=DeflatedExplicitVRLittleEndian))
    assert open_source(str(path)).splits["train"].read(0).values.shape == (4, 4)
    monkeypatch.setattr("mole.limits.ALWAYS_UNPACKED", 1 << 20)
    bomb = scan_bytes(
        syntax=DeflatedExplicitVRLittleEndian, Rows=2048, Columns=2048, PixelData=bytes(1 << 22)
    )
    assert len(bomb) < 10_000
    path.write_bytes(bomb)
    assert "unpacks to far more than images do" in bad_sample(path)


def stated_length(scan, length):
    """A scan whose first part says that it has another length."""
    return scan[:140] + length.to_bytes(4, "little") + scan[144:]


def with_commands(scan):
    """A scan with a command before its packed part, which also begins as packed bytes may."""
    at = 144 + int.from_bytes(scan[140:144], "little")
    block = b"\0\0\0\xff\xff"  # an empty block, which is also the beginning of the group
    command = block + b"\0" * 3
    return scan[:at] + command + scan[at:]


def with_a_long_comment(scan):
    """A scan whose first part is longer than any: a private element of 8 kB stands before its syntax."""
    comment = struct.pack("<HH2sHI", 2, 2, b"OB", 0, 8192) + bytes(8192)
    return scan[:144] + comment + scan[144:]


@pytest.mark.parametrize(
    "disguise",
    [
        lambda scan: stated_length(scan, 0),
        lambda scan: stated_length(scan, 0xFFFFFF0),
        with_commands,
        with_a_long_comment,
    ],
    ids=["short", "long", "commands", "comment"],
)
def test_a_deflated_bomb_in_disguise(tmp_path, monkeypatch, disguise):
    """pydicom goes by the elements that it finds, not by the length that they are said to have."""
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    monkeypatch.setattr("mole.limits.ALWAYS_UNPACKED", 1 << 20)
    unpacked = []
    monkeypatch.setattr(zlib, "decompress", lambda *given, **how: unpacked.append(given) or b"")
    bomb = scan_bytes(
        syntax=DeflatedExplicitVRLittleEndian, Rows=2048, Columns=2048, PixelData=bytes(1 << 22)
    )
    (tmp_path / "scan.dcm").write_bytes(disguise(bomb))
    bad_sample(tmp_path / "scan.dcm")
    assert not unpacked


def test_a_deflated_scan_may_state_a_wrong_length(tmp_path):
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    scan = stated_length(scan_bytes(syntax=DeflatedExplicitVRLittleEndian), 7)
    (tmp_path / "scan.dcm").write_bytes(scan)
    assert open_source(str(tmp_path / "scan.dcm")).splits["train"].read(0).values.shape == (4, 4)
