"""Good files of every kind, to be damaged."""

import gzip
import io
import json
import pickle
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pydicom
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import UID, CTImageStorage, DeflatedExplicitVRLittleEndian, ExplicitVRLittleEndian

import mole
from mole.exchange.checkpoint_files import CheckpointFacts, checkpoint_metadata
from mole.provider.keys.key_file import write_key_text, write_whitening
from mole.scheme.whitening import Whitening
from mole.storage.checked import save_checked

SHAPE = (3, 8, 8)


def layer() -> mole.FirstLayer:
    """A small convolution."""
    rng = np.random.default_rng(0)
    return mole.FirstLayer.conv(
        rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        rng.normal(size=4).astype(np.float32),
        input_shape=SHAPE,
        padding=1,
        normalisation=mole.Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)),
    )


def make_files(root: Path, kinds: Iterable[str]) -> None:
    """Write good files of these kinds, each kind into a folder of its own."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)
    labels = np.arange(24) % 3
    for kind in kinds:
        (root / kind).mkdir(parents=True)
    key = mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32))
    mole.save(layer(), root / "layer" / "layer.safetensors")
    mole.save(mole.augment(layer(), key), root / "augmented" / "layer.safetensors")
    mole.save(mole.augment(layer(), key, form="factored"), root / "factored" / "layer.safetensors")
    arrays: dict[str, Any] = {"x_train": images, "y_train": labels, "x_test": images[:5]}
    arrays["y_test"] = labels[:5]
    np.savez(root / "npz" / "data.npz", **arrays)
    np.savez_compressed(root / "npz-packed" / "data.npz", **arrays)
    np.save(root / "npy" / "data.npy", images)
    stored: tuple[tuple[str, Literal["float32", "int8"]], ...]
    stored = (("delivery", "float32"), ("delivery-int8", "int8"))
    for kind, dtype in stored:
        place = root / kind
        place.rmdir()
        mole.deliver(root / "npz" / "data.npz", layer(), key, place, dtype=dtype, rows_per_shard=16)
    np.savez(root / "unfinished" / "data.npz", **arrays)
    (root / "unfinished" / "out").mkdir()
    (root / "unfinished" / "out" / "unfinished.json").write_text('{"delivery_id": "0123"}')
    sample = rng.normal(size=(200, *SHAPE))
    whitened = mole.MorphKey.generate(
        SHAPE, kappa=4, core="whitened", sample=sample, insecure_seed=bytes(32)
    )
    (root / "key" / "key.txt").write_text(write_key_text(whitened.parameters, bytes(32)))
    (root / "key" / "whitening").write_bytes(write_whitening(cast(Whitening, whitened._whitening)))
    training = {"epochs": 5, "learning_rate": 0.001, "seed": 0, "weights": None, "network": "small_resnet"}
    facts = CheckpointFacts("small_resnet", SHAPE, 3, ("cat", "dog", "bird"), "0" * 32, training)
    described = {"name": "0", "output_shape": [4, 8, 8], "kappa": 1, "layout": "rows"}
    save_checked(
        root / "checkpoint" / "model.safetensors",
        {"0.weight": np.zeros((4, 3), np.float32)},
        checkpoint_metadata(facts, described),
    )
    _make_tables(root, images, labels)
    _make_published(root, rng)
    _make_pictures(root, images)


def _make_tables(root: Path, images: Any, labels: Any) -> None:
    pictures = [_picture(image, "PNG") for image in images]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    about = {"info": {"features": {"label": {"names": ["cat", "dog", "bird"], "_type": "ClassLabel"}}}}
    table = pa.table(
        {
            "image": pa.array([{"bytes": content, "path": None} for content in pictures], kind),
            "label": pa.array(labels),
            "site": pa.array([f"site {index % 2}" for index in range(len(labels))]),
        }
    ).replace_schema_metadata({"huggingface": json.dumps(about)})
    lists = pa.table({"x": pa.array(images[:, :, :, 0].tolist()), "label": pa.array(labels)})
    pq.write_table(table, root / "parquet" / "train.parquet", compression="snappy", row_group_size=10)
    pq.write_table(lists, root / "parquet-lists" / "train.parquet", compression="none", row_group_size=10)
    folder = root / "arrow"
    with (
        pa.OSFile(str(folder / "data.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        for batch in table.to_batches(max_chunksize=10):
            writer.write_batch(batch)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))


def _make_published(root: Path, rng: np.random.Generator) -> None:
    pixels = rng.integers(0, 256, (4, 3072), dtype=np.uint8)
    batch = pickle.dumps(
        {"data": pixels, "labels": [0, 1, 2, 1], "filenames": ["a", "b", "c", "d"]}, protocol=2
    )
    (root / "cifar" / "test_batch").write_bytes(batch)
    (root / "cifar" / "batches.meta").write_bytes(
        pickle.dumps({"label_names": ["cat", "dog", "bird"]}, protocol=2)
    )
    digits = rng.integers(0, 256, (6, 8, 8), dtype=np.uint8)
    names = {"train-images-idx3-ubyte": digits, "train-labels-idx1-ubyte": digits[:, 0, 0] % 3}
    for name, array in names.items():
        content = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
        (root / "idx" / name).write_bytes(content)
        (root / "idx-gz" / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))


def _make_pictures(root: Path, images: Any) -> None:
    for number, kind in enumerate(("PNG", "JPEG", "TIFF", "BMP", "WEBP")):
        suffix = {"JPEG": "jpg", "TIFF": "tif"}.get(kind, kind.lower())
        (root / "images" / f"{number}.{suffix}").write_bytes(_picture(images[number], kind))
    for folder in ("photos", "tables"):
        (root / "labels" / folder).mkdir()
    rows = [{"file_name": f"{n}.png", "label": "cat" if n else "dog", "age": 60 + n} for n in range(3)]
    for number in range(len(rows)):
        (root / "labels" / "photos" / f"{number}.png").write_bytes(_picture(images[number], "PNG"))
    tables = root / "labels" / "tables"
    lines = [",".join(map(str, line)) for line in (rows[0], *(row.values() for row in rows))]
    (tables / "labels.csv").write_text("\n".join(lines))
    (tables / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tables / "labels.parquet", compression="none")
    for name, syntax in (
        ("dicom", ExplicitVRLittleEndian),
        ("dicom-deflated", DeflatedExplicitVRLittleEndian),
    ):
        _write_dicom(root / name / "scan.dcm", images[:2, :, :, 0], syntax)


def _picture(image: Any, kind: str) -> bytes:
    content = io.BytesIO()
    Image.fromarray(image).save(content, kind)
    return content.getvalue()


def _write_dicom(path: Path, frames: Any, syntax: Any) -> None:
    scan = Dataset()
    scan.file_meta = FileMetaDataset()
    scan.file_meta.TransferSyntaxUID = syntax
    scan.file_meta.MediaStorageSOPClassUID = scan.SOPClassUID = CTImageStorage
    scan.file_meta.MediaStorageSOPInstanceUID = scan.SOPInstanceUID = UID("1.2.3")
    scan.PhotometricInterpretation, scan.SamplesPerPixel = "MONOCHROME2", 1
    scan.NumberOfFrames, scan.Rows, scan.Columns = frames.shape
    scan.BitsAllocated = scan.BitsStored = 8
    scan.HighBit, scan.PixelRepresentation = 7, 0
    scan.PixelData = frames.tobytes()
    pydicom.dcmwrite(path, scan, enforce_file_format=True)


TABLES = ("csv", "jsonl", "parquet")
