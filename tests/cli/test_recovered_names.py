"""`mole recover` gives images back under their names, or in a table."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from command import call, right
from grey_places import GIVEN, KEY, make_grey_place, make_labelled_photos, pixels

COUNT = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A key, a layer, photographs with a table of labels, and DICOM files."""
    folder = tmp_path_factory.mktemp("labels")
    make_grey_place(folder)
    make_labelled_photos(folder, COUNT)
    return folder


@pytest.fixture(scope="module")
def delivery(place):
    right(
        "deliver",
        "photos",
        *GIVEN,
        "--labels",
        "labels.csv",
        "--dtype",
        "int8",
        "--out",
        "delivery",
        cwd=place,
    )
    return "delivery"


@pytest.mark.parametrize("out", ["back", "back/", "back.v2/"])
def test_images_come_back_under_their_names(place, delivery, tmp_path, out):
    done = call(
        "recover", delivery, *KEY, "--out", f"{tmp_path}/{out}", "--data", "photos", "--json", cwd=place
    )
    assert done.returncode == 0
    facts = json.loads(done.stdout)
    assert (facts["recovered"], facts["PNG files"]) == (f"{tmp_path}/{out}".rstrip("/"), COUNT)
    assert done.stderr.startswith(
        "mole: note: the delivery has 8 bits: a value may be off by about "
        f"{facts['largest error']:g} grey levels of 255"
    )
    assert "deliver with --dtype float16 where that is too much" in done.stderr
    for number in range(COUNT):
        found = np.asarray(
            Image.open(tmp_path / out / ("odd" if number % 2 else "even") / f"{number:02d}.png")
        )
        assert np.abs(found.astype(int) - pixels(number)).max() <= 2 * facts["largest error"]


def test_a_table_comes_back(place, delivery, tmp_path):
    facts = right("recover", delivery, *KEY, "--out", tmp_path / "r.parquet", "--data", "photos", cwd=place)
    assert facts["rows"] == COUNT
    rows = pq.read_table(tmp_path / "r.parquet")
    assert rows["name"].to_pylist() == [f"photos/{number:02d}.png" for number in range(COUNT)]
    assert rows["class_name"].to_pylist() == ["even", "odd"] * (COUNT // 2)
