"""What is fuzzed: good files of every kind, how each is damaged, and who reads it.

Where a format carries a checksum, the checksum is made right again after the damage: whoever sends a
hostile file can do that, too.
"""

import contextlib
import gzip
import hashlib
import io
import json
import pickle
import random
import re
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pydicom
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import UID, CTImageStorage, DeflatedExplicitVRLittleEndian, ExplicitVRLittleEndian

import mole
from fuzz_mutations import as_json, changed, damaged
from mole.cli import main
from mole.errors import MoleError
from mole.exchange.checkpoint_files import CheckpointFacts, checkpoint_metadata, read_checkpoint
from mole.exchange.delivery import Delivery
from mole.exchange.shards import RESERVED
from mole.provider.keys.key_file import read_key_text, read_whitening, write_key_text, write_whitening
from mole.provider.plan import kept_types
from mole.scheme.convolution import features_of
from mole.scheme.whitening import Whitening
from mole.sources.opening import open_source
from mole.storage.checked import blanked_digest, save_checked

SHAPE = (3, 8, 8)
READ_AT_MOST = 4  # samples of each split
CHECKED = re.compile(rb'"sha256":"([0-9a-f]{64})"')
SEALED = re.compile(rb'"seal": "([0-9a-f]{64})"')
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

Damage = Callable[[bytes, random.Random], bytes]


class Target(NamedTuple):
    """A kind of file.

    Attributes:
        files: names in the folder of good files, one of which is damaged each time.
        damage: how.
        read: what is done with the folder; anything but a MoleError from it is a finding.
    """

    files: tuple[str, ...]
    damage: Damage
    read: Callable[[Path], object]


class OutputError(Exception):
    """A command that ended, or spoke, as none should."""


def command(*arguments: str) -> None:
    """A command of `mole`: it may refuse, in one printable line and with an exit code."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["mole", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    said = err.getvalue()
    if code not in (0, 1) or (code and not said.startswith("mole: ")) or "Traceback" in said:
        raise OutputError(f"exit code {code}: {said[-300:]}")
    if STEERING.search(said + out.getvalue()):
        raise OutputError("what it says could steer a terminal")


# Damage that knows the format.


def resealed(content: bytes, field: re.Pattern[bytes], where: bytes | None = None) -> bytes:
    """The same file with the right checksum in its field."""
    found = blanked_digest(
        field, content if where is None else where, () if where is None else [content[len(where) :]]
    )
    if found is None:
        return content
    position, digest = found
    return content[:position] + digest.encode() + content[position + 64 :]


def checked_bytes(content: bytes, rng: random.Random) -> bytes:
    """A checked file with damage anywhere, and its checksum right."""
    broken = damaged(content, rng)
    length = 8 + int.from_bytes(broken[:8], "little")
    return resealed(broken, CHECKED, broken[:length])


def checked_header(content: bytes, rng: random.Random) -> bytes:
    """A checked file with one of its fields changed, and its checksum right."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    values = header["__metadata__"]
    name = rng.choice([key for key in values if key not in ("sha256", "format")])
    if rng.random() < 0.2:
        tensors = {key: value for key, value in header.items() if key != "__metadata__"}
        header.update(changed(tensors, rng))
    else:
        with contextlib.suppress(ValueError):
            box = changed([json.loads(values[name])], rng)
            values[name] = json.dumps(box[0]) if box else "["
    text = json.dumps(header, separators=(",", ":")).encode()
    whole = struct.pack("<Q", len(text)) + text + content[8 + length :]
    return resealed(whole, CHECKED, whole[: 8 + len(text)])


def any_file(content: bytes, rng: random.Random) -> bytes:
    """A shard or a checked file with damage anywhere, and its checksum right if it has one."""
    return damaged(content, rng) if content.startswith(b"PAR1") else checked_bytes(content, rng)


def sealed_json(content: bytes, rng: random.Random) -> bytes:
    """A manifest with some fields changed, and its checksum right."""
    value = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = changed(value, rng)
    text = as_json(value)
    found = SEALED.search(text)
    if found is None:
        return text
    blank = text[: found.start(1)] + b"0" * 64 + text[found.end(1) :]
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)


def plain_json(content: bytes, rng: random.Random) -> bytes:
    """A JSON file with a field changed, or with any damage."""
    return as_json(changed(json.loads(content), rng)) if rng.random() < 0.7 else damaged(content, rng)


def packed(content: bytes, rng: random.Random) -> bytes:
    """A gzip file whose content is damaged, or the file itself."""
    if rng.random() < 0.5:
        return gzip.compress(damaged(gzip.decompress(content), rng), mtime=0)
    return damaged(content, rng)


# Readers.


def read_layer(folder: Path) -> None:
    """Load a layer, and run it on one sample."""
    for path in folder.glob("*.safetensors"):
        layer = mole.load(path)
        if isinstance(layer, mole.FirstLayer):
            features_of(layer, np.zeros((1, *layer.input_shape), np.float32))
        else:
            layer.features(np.zeros((1, *layer.input_shape), np.float32))
    command("info", str(next(folder.glob("*.safetensors"))))


def read_delivery(folder: Path) -> None:
    """Verify, inform, and read as a data set would."""
    put_right_checksums(folder)
    read_manifest(folder)


def audit_delivery(folder: Path) -> None:
    """Attack what is left of a delivery, for a moment."""
    put_right_checksums(folder)
    mole.save(layer(), folder.parent / "layer.safetensors")
    shutil.rmtree(folder.parent / "audit", ignore_errors=True)
    given = ("--layer", str(folder.parent / "layer.safetensors"), "--out", str(folder.parent / "audit"))
    command("audit", str(folder), *given, "--budget", "1", "--quiet")


def put_right_checksums(folder: Path) -> None:
    """Make the manifest say of every file what is true of it now."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for name, facts in manifest["files"].items():
        content = (folder / name).read_bytes()
        facts.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    blank = as_json({**manifest, "seal": "0" * 64})
    path.write_bytes(blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1))


def read_manifest(folder: Path) -> None:
    """Verify and inform, and read labels and ids of every split."""
    command("verify", str(folder))
    command("info", str(folder))
    delivery = Delivery.open(folder)
    for split in delivery.manifest.splits:
        delivery.labels(split)
        delivery.row_ids(split)
        [file.facts() for file in delivery.shard_files(split)]


def read_source(folder: Path) -> None:
    """Open a source, and read some samples of each split as the layer wants them."""
    inside = list(folder.iterdir())
    alone = inside[0] if len(inside) == 1 and inside[0].suffix in (".npz", ".npy", ".dcm") else folder
    source = open_source(str(alone))
    for split in source.splits.values():
        for index in range(min(len(split), READ_AT_MOST)):
            with contextlib.suppress(MoleError):
                split.read(index)
        for name in split.extra:
            split.extra[name][0]


def read_labelled(folder: Path) -> None:
    """Open images by each of the tables of labels beside them, and find the types of their columns."""
    for table in sorted((folder / "tables").iterdir()):
        with contextlib.suppress(MoleError):
            source = open_source(folder / "photos", labels=table)
            kept_types(source, [name for name in source.splits["train"].extra if name not in RESERVED])


def read_key(folder: Path) -> None:
    """The text of a key, and its whitening, as they are once they are decrypted."""
    parameters, _ = read_key_text((folder / "key.txt").read_bytes(), "a key")
    read_whitening(
        (folder / "whitening").read_bytes(), digest=parameters.whitening or "", name="a whitening"
    )


def read_network(folder: Path) -> None:
    """The header of a checkpoint."""
    read_checkpoint(folder / "model.safetensors")
    command("info", str(folder / "model.safetensors"))


def read_pinned(folder: Path) -> None:
    """A delivery into a place where another one seems to have begun."""
    with contextlib.suppress(MoleError):
        mole.deliver(
            folder / "data.npz",
            layer(),
            mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32)),
            folder / "out",
        )


# Good files.


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


def make_files(root: Path) -> None:
    """Write good files of every kind, each kind into a folder of its own."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)
    labels = np.arange(24) % 3
    for kind in FOLDERS:
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
SHARDS = ("data/train-00000-of-00002.parquet", "data/test-00000-of-00001.parquet")
CHECKED_FILES = ("probes.safetensors", "augmented-layer.safetensors")
TARGETS = {
    "layer": Target(("layer.safetensors",), checked_bytes, read_layer),
    "layer-header": Target(("layer.safetensors",), checked_header, read_layer),
    "augmented": Target(("layer.safetensors",), checked_bytes, read_layer),
    "augmented-header": Target(("layer.safetensors",), checked_header, read_layer),
    "factored": Target(("layer.safetensors",), checked_bytes, read_layer),
    "factored-header": Target(("layer.safetensors",), checked_header, read_layer),
    "manifest": Target(("manifest.json",), sealed_json, read_manifest),
    "delivery": Target(SHARDS, damaged, read_delivery),
    "delivery-int8": Target((*SHARDS, "scales.safetensors"), damaged, read_delivery),
    "audit": Target((*SHARDS, *CHECKED_FILES), any_file, audit_delivery),
    "delivery-checked": Target(CHECKED_FILES, checked_bytes, read_delivery),
    "delivery-header": Target(CHECKED_FILES, checked_header, read_delivery),
    "unfinished": Target(("out/unfinished.json",), plain_json, read_pinned),
    "key": Target(("key.txt", "whitening"), damaged, read_key),
    "checkpoint": Target(("model.safetensors",), checked_bytes, read_network),
    "checkpoint-header": Target(("model.safetensors",), checked_header, read_network),
    "npz": Target(("data.npz",), damaged, read_source),
    "npz-packed": Target(("data.npz",), damaged, read_source),
    "npy": Target(("data.npy",), damaged, read_source),
    "parquet": Target(("train.parquet",), damaged, read_source),
    "parquet-lists": Target(("train.parquet",), damaged, read_source),
    "arrow": Target(("data.arrow",), damaged, read_source),
    "arrow-state": Target(("state.json",), plain_json, read_source),
    "cifar": Target(("test_batch", "batches.meta"), damaged, read_source),
    "idx": Target(("train-images-idx3-ubyte", "train-labels-idx1-ubyte"), damaged, read_source),
    "idx-gz": Target(("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"), packed, read_source),
    "images": Target(("0.png", "1.jpg", "2.tif", "3.bmp", "4.webp"), damaged, read_source),
    "labels": Target(tuple(f"tables/labels.{kind}" for kind in TABLES), damaged, read_labelled),
    "dicom": Target(("scan.dcm",), damaged, read_source),
    "dicom-deflated": Target(("scan.dcm",), damaged, read_source),
}
# Several kinds of damage share a folder of good files.
SAME_FILES = {
    "layer-header": "layer",
    "augmented-header": "augmented",
    "factored-header": "factored",
    "manifest": "delivery",
    "audit": "delivery",
    "delivery-checked": "delivery",
    "delivery-header": "delivery",
    "checkpoint-header": "checkpoint",
    "arrow-state": "arrow",
}
FOLDERS = tuple(kind for kind in TARGETS if kind not in SAME_FILES)
