"""`mole deliver --labels` and its relatives on the command line."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mole
from command import call, files_in, right
from grey_places import GIVEN, IDENTITY, make_grey_place, make_labelled_photos, pixels

COUNT = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A key, a layer, photographs with a table of labels, and DICOM files."""
    folder = tmp_path_factory.mktemp("labels")
    make_grey_place(folder)
    make_labelled_photos(folder, COUNT)
    return folder


@pytest.fixture(scope="module")
def scans(place):
    from dicom_files import save

    for number in range(COUNT):
        elements = {"BodyPartExamined": "HEAD" if number % 2 else "CHEST", "Modality": "US"}
        save(place / "scans" / "DOE_JANE" / f"{number}.dcm", pixels(number), **elements)
    return place / "scans"


def test_labels_of_a_table(place, tmp_path):
    facts = right(
        "deliver",
        "photos",
        *GIVEN,
        "--labels",
        "labels.csv",
        "--keep",
        "age",
        "--out",
        tmp_path / "d",
        cwd=place,
    )
    assert (facts["labels"], facts["labels from"]) == (True, "labels.csv")
    assert pq.read_table(tmp_path / "d" / "data").column_names[-1] == "age"
    arrays = mole.recover(tmp_path / "d", mole.MorphKey.load(place / "my.key", identities=[str(IDENTITY)]))
    assert arrays["y_train"].tolist() == [number % 2 for number in range(COUNT)]


def test_what_is_said_of_columns_that_leave(place, tmp_path):
    deliver = ["deliver", "photos", *GIVEN, "--labels", "labels.csv", "--out"]
    leaves = "These columns leave unchanged, for the receiver to read: "
    done = call(*deliver, tmp_path / "d", "--keep", "age", "--keep", "file_name", cwd=place)
    assert f"{leaves}age and file_name.\n" in done.stderr
    assert leaves not in call(*deliver, tmp_path / "e", cwd=place).stderr


def test_all_mistakes_of_a_table_in_one_message_and_nothing_written(place, tmp_path):
    table = tmp_path / "wrong.csv"
    table.write_text(
        (place / "labels.csv").read_text().replace("03.png", "33.png").replace("07.png,odd", "07.png,")
    )
    done = call("deliver", "photos", *GIVEN, "--labels", table, "--out", tmp_path / "d", cwd=place)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"mole: {table} does not fit the images of photos:",
        "  - in the table, but not in the folder (1): 33.png",
        "  - no label (1): 07.png",
        "  - in the folder, but not in the table (1): 03.png",
    ]
    assert files_in(tmp_path) == {"wrong.csv"}


def test_a_table_whose_labels_have_another_name_gets_the_option_that_helps(place, tmp_path):
    (tmp_path / "t.csv").write_text((place / "labels.csv").read_text().replace("label", "finding"))
    deliver = ["deliver", "photos", *GIVEN, "--labels", tmp_path / "t.csv", "--out", tmp_path / "d"]
    done = call(*deliver, cwd=place)
    assert (done.returncode, files_in(tmp_path)) == (1, {"t.csv"})
    assert "no column 'label' (it has finding, age): give --label-column\n" in done.stderr
    assert right(*deliver, "--label-column", "finding", cwd=place)["labels"]


def test_a_labelled_gif_is_told_with_the_other_images_that_cannot_be_used(place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    (tmp_path / "photos" / "00.png").rename(tmp_path / "photos" / "00.gif")
    (tmp_path / "photos" / "01.png").write_bytes(b"")
    table = tmp_path / "t.csv"
    table.write_text((place / "labels.csv").read_text().replace("00.png", "00.gif"))
    deliver = ["deliver", tmp_path / "photos", *GIVEN, "--labels", table, "--out", tmp_path / "d"]
    done = call(*deliver, cwd=place)
    assert (done.returncode, (tmp_path / "d").exists()) == (1, False)
    first, gif, empty = done.stderr.splitlines()
    assert first == "mole: 2 of 12 images cannot be used, for 2 reasons:"
    assert "00.gif: it is of a kind that cannot be read: convert it to PNG, or leave it out" in gif
    assert "01.png: it is empty" in empty
    assert right(*deliver, "--skip-bad", cwd=place)["rows"] == {"train": COUNT - 2}


def test_one_split_with_labels_is_remarked_upon(place, tmp_path):
    remark = "mole: note: it has one split: whoever trains on it has no other images to test on"
    labelled = ["deliver", "photos", *GIVEN, "--labels", "labels.csv", "--out"]
    assert remark in call(*labelled, tmp_path / "one", cwd=place).stderr
    assert remark not in call(*labelled, tmp_path / "one", cwd=place).stderr  # it was complete
    draw = np.stack([pixels(number) for number in range(4)])
    answers = np.array([0, 1, 0, 1])
    np.savez(tmp_path / "two.npz", x_train=draw, y_train=answers, x_test=draw, y_test=answers)
    done = call("deliver", tmp_path / "two.npz", *GIVEN, "--out", tmp_path / "two", cwd=place)
    assert (done.returncode, "it has one split" in done.stderr) == (0, False)


def test_a_table_of_images_without_labels_gets_the_option_for_tables(place, tmp_path):
    images = pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack([pixels(n) for n in range(3)]))
    pq.write_table(pa.table({"image": images, "finding": ["a", "b", "a"]}), tmp_path / "t.parquet")
    deliver = ["deliver", tmp_path / "t.parquet", *GIVEN, "--out"]
    done = call(*deliver, tmp_path / "d", cwd=place)
    assert "no labels leave with it" in done.stderr
    assert "; name the column that has them with --label-column\n" in done.stderr
    assert right(*deliver, tmp_path / "e", "--label-column", "finding", cwd=place)["labels"]


def test_without_labels_a_remark(place, tmp_path):
    done = call("deliver", "photos", *GIVEN, "--out", tmp_path / "d", cwd=place)
    assert done.returncode == 0
    assert (
        "mole: note: no labels leave with it: nothing can be trained on it as it is; give a table"
        in done.stderr
    )
    again = ["deliver", "photos", *GIVEN, "--no-labels", "--out", tmp_path / "e"]
    assert "nothing can be trained" not in call(*again, cwd=place).stderr
    quiet = call("deliver", "photos", *GIVEN, "-q", "--out", tmp_path / "d", cwd=place)
    assert (quiet.returncode, quiet.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--no-labels", "--labels", "labels.csv"], "--no-labels hands over no labels"),
        (["--folder-labels", "--label-tag", "Modality"], "--folder-labels is for labels made from folders"),
        (["--window", "40"], "'40' is not a window: write it as 40,400, or as none"),
    ],
)
def test_options_that_cannot_be_used(place, tmp_path, options, sentence):
    done = call("deliver", "photos", *GIVEN, *options, "--out", tmp_path / "d", cwd=place)
    assert done.returncode == 2
    assert done.stderr.startswith(f"mole: {sentence}")
    assert len(done.stderr.splitlines()) == 1
    assert files_in(tmp_path) == set()


def test_text_in_pixels_is_warned_of_even_when_quiet(place, scans, tmp_path):
    arguments = ["deliver", "scans", *GIVEN, "--label-tag", "BodyPartExamined", "--out", tmp_path / "d"]
    done = call(*arguments, "--window", "none", "--quiet", "--json", cwd=place)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "mole: warning: 12 of 12 DICOM files may show text, such as a name (12 are ultrasound): pixels"
    )
    assert json.loads(done.stdout)["labels from"] == "the DICOM tag BodyPartExamined"


def test_other_commands_read_scans_in_the_same_way(place, scans, tmp_path):
    done = call(
        "review",
        "scans",
        "--layer",
        "layer.safetensors",
        "--window",
        "none",
        "--out",
        tmp_path / "r.png",
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    arguments = [
        "keygen",
        "--layer",
        "layer.safetensors",
        "--out",
        tmp_path / "new.key",
        "--window",
        "none",
    ]
    done = call(*arguments, "--recipient", str(IDENTITY.to_public()), cwd=place)
    assert (done.returncode, files_in(tmp_path)) == (2, {"r.png"})
    assert done.stderr == (
        "mole: --window, --depth and --skip-bad say how --data and --public are read: add one, or leave "
        "them out\n"
    )
    sixteen = call(
        "morph",
        "scans",
        *GIVEN,
        "--window",
        "128,256",
        "--depth",
        "16",
        "--out",
        tmp_path / "m",
        "-q",
        "--json",
        cwd=place,
    )
    assert sixteen.returncode == 0
    assert "DICOM files may show text" in sixteen.stderr
    arrays = mole.recover(tmp_path / "m", mole.MorphKey.load(place / "my.key", identities=[str(IDENTITY)]))
    assert arrays["x_train"].dtype == np.uint16
    order = sorted(range(COUNT), key=lambda number: f"{number}.dcm")
    np.testing.assert_array_equal(
        arrays["x_train"][:, 0], np.stack([pixels(n).astype(np.uint16) * 257 for n in order])
    )


def test_a_damaged_scan_is_skipped_though_its_header_should_have_the_label(place, scans, tmp_path):
    shutil.copytree(scans, tmp_path / "scans")
    (tmp_path / "scans" / "DOE_JANE" / "5.dcm").write_bytes(b"damaged")
    arguments = ["deliver", tmp_path / "scans", *GIVEN, "--label-tag", "BodyPartExamined", "-q", "--json"]
    done = call(*arguments, "--out", tmp_path / "d", cwd=place)
    assert done.returncode == 1
    assert "5.dcm (frame 0) cannot be used: it is not a readable DICOM image" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("leave it out: give --skip-bad")
    assert not (tmp_path / "d").exists()
    done = call(*arguments, "--skip-bad", "--out", tmp_path / "d", cwd=place)
    assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, {"train": COUNT - 1})


def test_labels_of_requests_are_not_looked_at(place, tmp_path):
    images = pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack([pixels(n) for n in range(3)]))
    empty = pa.array([None] * 3, pa.int64())
    pq.write_table(pa.table({"image": images, "label": empty}), tmp_path / "new.parquet")
    done = call("morph", tmp_path / "new.parquet", *GIVEN, "--out", tmp_path / "m", "-q", cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    labelled = call("deliver", tmp_path / "new.parquet", *GIVEN, "--out", tmp_path / "d", cwd=place)
    assert (labelled.returncode, (tmp_path / "d").exists()) == (1, False)
    assert "column 'label' must hold text or a whole number in every row" in labelled.stderr


def test_folders_of_scans_are_handed_over_by_name(place, scans, tmp_path):
    arguments = ["deliver", "scans", *GIVEN, "--no-class-names", "--out", tmp_path / "d"]
    done = call(*arguments, cwd=place)
    assert "labels made of them stay here; --folder-labels hands them over" in done.stderr
    assert "nothing can be trained on it as it is" in done.stderr
    done = call(*arguments[:-1], tmp_path / "e", "--folder-labels", "--json", cwd=place)
    assert json.loads(done.stdout)["labels"] is True
