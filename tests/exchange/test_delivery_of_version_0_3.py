"""What version 0.3 wrote still works, and the same call still writes the same.

`golden/delivery-0.3` holds a source, a first layer, two keys, and three deliveries that version 0.3 made of
them. Everything goes through the command line, so that the library behind it may change its shape.
"""

import json
import platform
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file

from command import call, files_in, right, run

GOLDEN = Path(__file__).parents[1] / "golden" / "delivery-0.3"

# The last bit of a product depends on the order in which a processor adds up. Every processor with AVX2 can
# do it in one and the same order, in which the golden files were made.
CAN_ADD_IN_THAT_ORDER = (
    platform.machine() in {"x86_64", "AMD64"} and torch.backends.cpu.get_cpu_capability() != "DEFAULT"
)
THAT_ORDER = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"} if CAN_ADD_IN_THAT_ORDER else {}

SAID_SINCE_0_5 = ("kernel", "stride", "padding", "dilation", "groups")  # in an augmented layer's header
NAMED_SINCE_0_6 = "image_int8"  # what 8-bit values are called

NETWORK = """
from torch import nn

def tiny(classes=3):
    stem = nn.Conv2d(1, 4, 3, stride=2, padding=1)
    return nn.Sequential(stem, nn.ReLU(), nn.Flatten(), nn.Linear(64, classes))
"""


class Made(NamedTuple):
    """How a delivery was made."""

    key: tuple[str, ...]
    options: tuple[str, ...]


WITH_PASSPHRASE = ("--key", "provider.key.age", "--passphrase-file", "passphrase.txt")
WITH_IDENTITY = ("--key", "whitened.key.age", "--identity", "identity.txt")
DELIVERIES = {
    "float32": Made(WITH_PASSPHRASE, ()),
    "int8": Made(WITH_PASSPHRASE, ("--dtype", "int8")),
    "whitened": Made(WITH_IDENTITY, ("--dtype", "float16", "--layer-dtype", "float16", "--no-class-names")),
}
each_delivery = pytest.mark.parametrize("name", DELIVERIES)


@pytest.fixture
def place(tmp_path) -> Path:
    """A copy of the golden folder, because commands may write beside the files that they are given."""
    shutil.copytree(GOLDEN, tmp_path / "place")
    (tmp_path / "place" / "network.py").write_text(NETWORK)
    return tmp_path / "place"


@pytest.fixture(scope="module", params=DELIVERIES)
def both(request, tmp_path_factory) -> tuple[Path, Path]:
    """A delivery of version 0.3, and the one that the same call makes today."""
    place = tmp_path_factory.mktemp("again") / "place"
    shutil.copytree(GOLDEN, place)
    made = DELIVERIES[request.param]
    done = run(
        "deliver", "source.npz", "--layer", "first-layer.safetensors", *made.key, *made.options,
        "--out", "today", cwd=place, **THAT_ORDER,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return GOLDEN / request.param, place / "today"


@each_delivery
def test_it_verifies(place, name):
    checks = right("verify", name, cwd=place)
    assert set(checks) == {"manifest", "files", "rows", "augmented layer", "data"}
    assert all(check["holds"] for check in checks.values())


@each_delivery
@pytest.mark.parametrize(
    "file", ["manifest.json", "probes.safetensors", "data/test-00000-of-00001.parquet"]
)
def test_it_does_not_verify_with_one_bit_flipped(place, name, file):
    content = bytearray((place / name / file).read_bytes())
    content[len(content) // 2] ^= 1
    (place / name / file).write_bytes(content)
    assert call("verify", name, cwd=place).returncode == 1


# How far off a recovered pixel may be: 8 bits have lost that much already.
@pytest.mark.parametrize(("name", "most"), [("float32", 0), ("int8", 3), ("whitened", 0)])
def test_the_key_recovers_the_source_from_it(place, name, most):
    right("recover", name, *DELIVERIES[name].key, "--out", "recovered.npz", cwd=place)
    with np.load(place / "recovered.npz") as recovered, np.load(place / "source.npz") as source:
        for split, rows in (("train", 24), ("test", 8)):
            found, true = recovered[f"x_{split}"], source[f"x_{split}"]
            assert found.dtype == np.uint8
            off = found.reshape(rows, 8, 8).astype(int) - true
            assert np.abs(off).max() <= most
            assert np.array_equal(recovered[f"y_{split}"], source[f"y_{split}"])


def test_another_key_does_not_open_it(place):
    done = call("recover", "float32", *WITH_IDENTITY, "--out", "recovered.npz", cwd=place)
    assert done.returncode == 1
    assert not (place / "recovered.npz").exists()


@each_delivery
def test_a_network_trains_on_it(place, name):
    right(
        "train", name, "--network", "network:tiny", "--epochs", "1", "--batch-size", "8",
        "--out", "model.safetensors", cwd=place,
    )  # fmt: skip
    assert (place / "model.safetensors").stat().st_size > 16_000


def test_today_s_delivery_has_the_same_files(both):
    golden, today = both
    assert files_in(golden) == files_in(today)


def test_today_s_rows_have_the_same_names_order_and_types(both):
    for then, now in _tables(both):
        assert (NAMED_SINCE_0_6 in now.column_names) == (both[0].name == "int8")
        now = _as_in_0_3(now)  # noqa: PLW2901
        assert now.schema.equals(then.schema, check_metadata=True)
        assert now.drop_columns("image").equals(then.drop_columns("image"))


def test_today_s_values_are_the_same_on_every_processor(both):
    for then, now in _tables(both):
        tables = (then, _as_in_0_3(now))
        values = [table["image"].combine_chunks().flatten().to_numpy() for table in tables]
        if values[0].dtype == np.int8:
            assert np.abs(values[1].astype(int) - values[0]).max() <= 1
        else:
            assert _are_close(*values)
    for then, now in _sealed_files(both):
        tensors = load_file(now)
        for name, true in load_file(then).items():
            assert _are_close(true, tensors[name]), name


def test_today_s_manifest_says_the_same(both):
    then, now = (json.loads((folder / "manifest.json").read_text()) for folder in both)
    if both[0].name == "int8":
        assert (then.pop("version"), now.pop("version")) == (2, 4)
        assert now.pop("column") == NAMED_SINCE_0_6
        for manifest in (then, now):
            for name in ("data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"):
                manifest["files"][name].pop("bytes")
    assert list(now) == list(then)
    for manifest in (then, now):
        for changing in ("seal", "tool"):
            del manifest[changing]
        # Of a card the wording may change; of the others the order of the header, and the last bit.
        assert manifest["files"].pop("README.md")["bytes"] > 500
        for facts in manifest["files"].values():
            assert len(facts.pop("sha256")) == 64
        # Since version 0.5 a layer's header says what it was made from.
        manifest["files"]["augmented-layer.safetensors"].pop("bytes")
    assert now.pop("probe_error") == pytest.approx(then.pop("probe_error"), rel=0.5)
    assert now == then


def test_today_s_layer_says_what_it_was_made_from(both):
    for folder, says in zip(both, (False, True), strict=True):
        with safe_open(folder / "augmented-layer.safetensors", framework="np") as file:
            header = file.metadata()
        assert [name in header for name in SAID_SINCE_0_5] == [says] * 5
    assert json.loads(header["kernel"]) == [3, 3]
    assert json.loads(header["padding"]) == [[1, 1], [1, 1]]


def test_today_s_card_names_the_same_files(both):
    then, now = ((folder / "README.md").read_text().split("---\n")[1] for folder in both)
    assert now.startswith(then + "dataset_info:\n")  # since version 0.6 it also says what is in them


# Where sums can be taken in the same order, everything is the same, and not only close.
to_the_last_bit = pytest.mark.skipif(
    not CAN_ADD_IN_THAT_ORDER, reason="this processor cannot add up in the order of the golden files"
)


@to_the_last_bit
def test_today_s_shards_have_the_same_bytes(both):
    golden, today = both
    for path in sorted(golden.glob("data/*.parquet")):
        again = today / "data" / path.name
        # Another pyarrow may lay out a file in another way.
        if (
            golden.name != "int8"
            and pq.read_metadata(again).created_by == pq.read_metadata(path).created_by
        ):
            assert again.read_bytes() == path.read_bytes()
    for then, now in _tables(both):
        assert _as_in_0_3(now).equals(then)


@to_the_last_bit
def test_today_s_layer_probes_and_scales_have_the_same_bytes(both):
    for then, now in _sealed_files(both):
        assert _split(now) == _split(then)
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in both]
    assert manifests[0]["probe_error"] == manifests[1]["probe_error"]


@to_the_last_bit
def test_another_key_gives_other_bytes(place):
    done = run(
        "deliver", "source.npz", "--layer", "first-layer.safetensors", *WITH_IDENTITY,
        "--out", "other", cwd=place, **THAT_ORDER,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    others = (GOLDEN / "float32", place / "other")
    assert not any(now.equals(then) for then, now in _tables(others))
    assert not any(_split(now) == _split(then) for then, now in _sealed_files(others))


def _tables(both: tuple[Path, Path]) -> list[tuple]:
    golden, today = both
    names = sorted(path.relative_to(golden) for path in golden.glob("data/*.parquet"))
    assert len(names) == 2
    return [(pq.read_table(golden / name), pq.read_table(today / name)) for name in names]


def _as_in_0_3(table: pa.Table) -> pa.Table:
    """A table of today with the column's name, and without the scales, that 8-bit data did not have."""
    names = ["image" if name == NAMED_SINCE_0_6 else name for name in table.column_names]
    metadata = {name: text for name, text in table.schema.metadata.items() if name != b"scales"}
    return table.rename_columns(names).replace_schema_metadata(metadata)


def _sealed_files(both: tuple[Path, Path]) -> list[tuple[Path, Path]]:
    golden, today = both
    found = sorted(golden.glob("*.safetensors"))
    assert len(found) >= 2
    return [(path, today / path.name) for path in found]


def _split(path: Path) -> tuple[dict, bytes]:
    """Header without checksum and what 0.3 did not write, and the rest; entries stood in no fixed order."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    del header["__metadata__"]["sha256"]
    if header["__metadata__"]["format"] == "mole-augmented-layer":
        for name in SAID_SINCE_0_5:
            header["__metadata__"].pop(name, None)
    return header, content[end:]


def _are_close(true: np.ndarray, found: np.ndarray) -> bool:
    if found.dtype != true.dtype or found.shape != true.shape:
        return False
    if true.dtype.kind in "ui":
        return np.array_equal(found, true) if true.dtype != np.int8 else np.abs(found - true).max() <= 1
    step = 1e-3 if true.dtype == np.float16 else 1e-5
    return np.allclose(found, true, rtol=0, atol=step * np.abs(true).max())
