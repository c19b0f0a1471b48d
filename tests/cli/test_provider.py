"""The provider's files on the command line: who may read them, and what they are good for."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyrage
import pytest
from PIL import Image

import mole
from command import call, right
from deliveries import make_key, make_layer

IDENTITY = pyrage.x25519.Identity.generate()
KEY = ["--key", "my.key", "--identity", "identity.txt"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Photos, one of them bad, a layer, a key, and a delivery that skipped it."""
    folder = tmp_path_factory.mktemp("place")
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for index in range(10):
        pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{index}.png")
    (folder / "photos" / "3.png").write_bytes(b"no image")
    mole.save(make_layer(), folder / "layer.safetensors")
    make_key().save(folder / "my.key", recipients=[str(IDENTITY.to_public())])
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    deliver(folder, "delivery")
    return folder


def deliver(place: Path, out: str) -> dict:
    return right(
        "deliver", "photos", "--layer", "layer.safetensors", *KEY, "--skip-bad", "--out", out, cwd=place
    )


def test_skipped_samples_are_listed_the_second_time_too(place):
    again = deliver(place, "delivery")
    assert (again["rows"], again["skipped"]) == ({"train": 9}, 1)
    assert again["skipped samples"] == ["photos/3.png"]
    (line,) = (place / "my.key.ledger").read_text().splitlines()
    assert json.loads(line)["skipped"] == again["skipped samples"]


def test_what_is_recovered_is_for_its_owner_only(place, tmp_path):
    stale = [tmp_path / ".r.npz.12345678.part", tmp_path / ".other.npz.12345678.part"]
    for file in stale:
        file.write_bytes(b"plain data that a killed run left")
    right("recover", "delivery", *KEY, "--out", tmp_path / "r.npz", cwd=place)
    assert (tmp_path / "r.npz").stat().st_mode & 0o777 == 0o600
    assert [file.exists() for file in stale] == [False, True]
    with np.load(tmp_path / "r.npz") as recovered:
        assert set(recovered.files) == {"x_train", "row_id_train"}


def test_predictions_are_joined_with_samples(place, tmp_path):
    facts = right(
        "recover", "delivery", *KEY, "--ids", tmp_path / "ids.parquet", "--data", "photos", cwd=place
    )
    assert facts["rows"] == 9
    assert (tmp_path / "ids.parquet").stat().st_mode & 0o777 == 0o600
    assert not (place / "recovered.npz").exists()
    ids = pq.read_table(tmp_path / "ids.parquet").to_pydict()
    assert [Path(name).name for name in ids["name"]] == [f"{i}.png" for i in range(10) if i != 3]
    rows = pq.read_table(next((place / "delivery" / "data").iterdir()))
    assert sorted(ids["row_id"]) == sorted(rows["row_id"].to_pylist())


@pytest.mark.parametrize(
    ("options", "sentence", "code"),
    [
        (["--data", "nowhere", "--out", "new.npz"], "nowhere does not exist", 1),
        (["--out", "images.zip"], "name it something.npz, something.parquet, or a folder, with a slash", 1),
        (["--out", "photos"], "photos exists already: choose another name, or replace it: give --force", 1),
        (["--out", "delivery", "--force"], "delivery holds more than PNG files (", 1),
        (["--ids", "my.key"], "my.key exists already", 1),
        (
            ["--ids", "ids.parquet", "--out", "new.npz"],
            "--ids writes a table and no images: leave out --out",
            2,
        ),
        (["--ids", "ids.parquet", "--data", "nowhere"], "nowhere does not exist", 1),
    ],
)
def test_mistakes_are_one_sentence(place, options, sentence, code):
    done = call("recover", "delivery", *KEY, *options, cwd=place)
    assert done.returncode == code
    assert done.stderr.startswith("mole: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (place / "ids.parquet").exists()


def test_keygen_warns_of_a_layer_that_has_a_key(place):
    recipient = str(IDENTITY.to_public())
    done = call(
        "keygen", "--layer", "layer.safetensors", "--recipient", recipient, "--out", "second.key", cwd=place
    )
    assert done.returncode == 0
    assert "mole: warning: data for this first layer was delivered under my.key before" in done.stderr
    assert (place / "second.key").exists()


def test_keygen_says_what_a_large_kappa_costs(place):
    recipient = str(IDENTITY.to_public())
    for kappa in (1, 4):
        choices = ["--recipient", recipient, "--kappa", kappa, "--out", f"{kappa}.key"]
        done = call("keygen", "--layer", "layer.safetensors", *choices, cwd=place)
        assert done.returncode == 0
        assert ("kappa = 1 hides more" in done.stderr) == (kappa > 1)
