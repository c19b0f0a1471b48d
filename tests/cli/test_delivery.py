"""The provider's commands and the checks of both roles, as transcripts."""

import json
import re
import shutil
from pathlib import Path

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pyrage
import pytest
from PIL import Image

import mole
from command import call, right
from deliveries import contents, make_layer, write_npz

IDENTITY = pyrage.x25519.Identity.generate()


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Data, a layer, a key and a delivery."""
    folder = tmp_path_factory.mktemp("place")
    write_npz(folder / "data.npz", train=400, test=20)
    mole.save(make_layer(), folder / "layer.safetensors")
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    recipient = str(IDENTITY.to_public())
    right("keygen", "--layer", "layer.safetensors", "--recipient", recipient, "--out", "my.key", cwd=folder)
    right("deliver", "data.npz", *OPENED, "--out", "delivery", cwd=folder)
    return folder


OPENED = ["--layer", "layer.safetensors", "--key", "my.key", "--identity", "identity.txt"]


def test_both_roles_from_end_to_end(place, tmp_path):
    checks = right("verify", "delivery", cwd=place)
    assert all(check["holds"] for check in checks.values())
    facts = right("info", "delivery", cwd=place)
    assert facts["rows"] == {"train": 400, "test": 20}
    assert facts["delivery id"] == json.loads((place / "delivery/manifest.json").read_text())["delivery_id"]
    assert facts["recipients"].startswith("none: it is not sealed")
    out = tmp_path / "recovered.npz"
    right("recover", "delivery", "--key", "my.key", "--identity", "identity.txt", "--out", out, cwd=place)
    with np.load(out) as recovered, np.load(place / "data.npz") as truth:
        assert np.array_equal(recovered["x_train"].transpose(0, 2, 3, 1), truth["x_train"])
        assert np.array_equal(recovered["y_test"], truth["y_test"])


def test_a_whitened_key_is_the_default_with_data(place, tmp_path):
    recipient = str(IDENTITY.to_public())
    facts = right(
        "keygen", "--layer", "layer.safetensors", "--data", "data.npz", "--recipient", recipient,
        "--out", tmp_path / "w.key", cwd=place,
    )  # fmt: skip
    assert facts["core"] == "whitened"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.key", "w.key.whitening"]
    opened = ["--layer", "layer.safetensors", "--key", tmp_path / "w.key", "--identity", "identity.txt"]
    right("deliver", "data.npz", *opened, "--dtype", "int8", "--out", tmp_path / "d", cwd=place)
    assert all(check["holds"] for check in right("verify", tmp_path / "d", cwd=place).values())
    rows = sum(right("info", tmp_path / "d", cwd=place)["rows"].values())
    told = call("morph", "data.npz", *opened, "--out", tmp_path / "more", cwd=place).stderr
    assert f"{2 * rows} images of 192 numbers have been morphed with this core so far" in told


def test_few_images_and_public_ones_make_a_whitened_key(place, tmp_path):
    """192 elements, and 12 images: the shrinkage says so, and public images take it away."""
    recipient, rng = str(IDENTITY.to_public()), np.random.default_rng(0)
    for name, count in (("few", 12), ("public", 400)):
        np.savez(tmp_path / f"{name}.npz", x_train=rng.integers(0, 256, (count, 8, 8, 3), dtype=np.uint8))
    for out, options, learned, few in [
        ("a.key", ["--data", tmp_path / "few.npz"], "learned from 12 images, shrinkage", True),
        (
            "b.key",
            ["--data", tmp_path / "few.npz", "--public", tmp_path / "public.npz"],
            "412 images, no",
            False,
        ),
        ("c.key", ["--public", tmp_path / "public.npz"], "learned from 400 images, no shrinkage", False),
    ]:
        done = call(
            "keygen", "--layer", "layer.safetensors", *options, "--recipient", recipient,
            "--out", tmp_path / out, "--json", cwd=place,
        )  # fmt: skip
        assert done.returncode == 0
        assert learned in json.loads(done.stdout)["whitening"]
        assert ("images are too few for a core of side 192; 384 would be enough" in done.stderr) == few
        assert "block" not in done.stderr
        shown = right("info", tmp_path / out, "--identity", "identity.txt", cwd=place)
        assert shown["whitening"] == json.loads(done.stdout)["whitening"]


def test_a_key_that_learns_nothing_says_what_that_gives_up(place, tmp_path):
    made = ["keygen", "--layer", "layer.safetensors", "--recipient", str(IDENTITY.to_public()), "--out"]
    done = call(*made, tmp_path / "o.key", cwd=place)
    assert "learns brightness, colour and layout of yours" in done.stderr
    assert "unless the key is for a protected delivery" in done.stderr  # which a whitened key cannot make
    assert "with --data, or from similar ones with --public, which hides more" in done.stderr
    assert call(*made, tmp_path / "q.key", "--quiet", cwd=place).stderr == ""
    whitened = call(*made, tmp_path / "w.key", "--data", "data.npz", cwd=place)
    assert "brightness" not in whitened.stderr


def test_further_data_is_morphed_with_the_same_key(place, tmp_path):
    facts = right("morph", "data.npz", *OPENED, "--out", tmp_path / "requests", cwd=place)
    delivered = right("info", "delivery", cwd=place)
    assert facts["key fingerprint"] == delivered["key fingerprint"]
    assert not (tmp_path / "requests" / "augmented-layer.safetensors").exists()


@pytest.fixture(scope="module")
def photos(place) -> Path:
    """A folder of class folders: the names of classes are the names of folders."""
    for name in ("healthy", "rare-disease"):
        (place / "photos" / name).mkdir(parents=True)
        for index in range(6):
            pixels = np.full((8, 8, 3), 40 * index, dtype=np.uint8)
            Image.fromarray(pixels).save(place / "photos" / name / f"{index}.png")
    return place / "photos"


def test_requests_carry_no_labels_and_no_names(place, photos, tmp_path):
    facts = right("morph", photos, *OPENED, "--out", tmp_path / "requests", cwd=place)
    assert facts["rows"] == {"requests": 12}
    assert (facts["read as"], facts["labels"]) == ("image folder", False)
    for file in (tmp_path / "requests").rglob("*"):
        assert not file.is_file() or b"rare-disease" not in file.read_bytes()
    (shard,) = (tmp_path / "requests" / "data").iterdir()
    assert pq.read_table(shard).column_names == ["row_id", "image"]
    assert right("info", tmp_path / "requests", cwd=place)["classes"] is None
    assert all(check["holds"] for check in right("verify", tmp_path / "requests", cwd=place).values())


def test_what_it_means_is_said_in_lines(place, photos, tmp_path):
    done = call("deliver", photos, *OPENED, "--out", tmp_path / "out", cwd=place)
    assert done.returncode == 0
    assert "\\n" not in done.stderr
    assert "\nWhat the receiver can also do, by trying: get your images back." in done.stderr
    assert "\nWhat a stranger who gets the whole folder can do: look at maps of features" in done.stderr


def test_names_of_classes_are_listed_before_anything_is_written(place, photos, tmp_path):
    told = "mole: note: the names of 2 classes leave: healthy, rare-disease; with --no-class-names"
    done = call("deliver", photos, *OPENED, "--out", "/proc/nowhere/delivery", cwd=place)
    assert done.returncode == 1  # nothing can be written there
    assert done.stderr.startswith(told)
    done = call("deliver", photos, *OPENED, "--out", tmp_path / "n", "--no-class-names", cwd=place)
    assert "healthy" not in done.stderr


def test_names_that_may_be_people_s_leave_when_they_are_asked_for(place, photos, tmp_path):
    shutil.copytree(photos, tmp_path / "small")
    for index in range(3):
        (tmp_path / "small" / "rare-disease" / f"{index}.png").unlink()
    done = call("deliver", tmp_path / "small", *OPENED, "--out", tmp_path / "d", cwd=place)
    assert done.stderr.splitlines()[0] == (
        "mole: note: the names of 2 classes stay here: one of them has only 3 samples, and may be a "
        "person's; --class-names hands them over"
    )
    assert done.stderr.splitlines()[-1] == "The label of each image leaves with it."
    assert not any(b"rare-disease" in content for content in contents(tmp_path / "d").values())
    right("deliver", tmp_path / "small", *OPENED, "--out", tmp_path / "asked", "--class-names", cwd=place)
    assert right("info", tmp_path / "asked", cwd=place)["classes"] == ["healthy", "rare-disease"]


def test_the_last_line_says_that_class_names_leave(place, photos, tmp_path):
    done = call("deliver", photos, *OPENED, "--out", tmp_path / "d", cwd=place)
    last = done.stderr.splitlines()[-1]
    assert last == "The label of each image leaves with it, and the names of 2 classes."
    assert b"rare-disease" in (tmp_path / "d" / "manifest.json").read_bytes()
    done = call("deliver", photos, *OPENED, "--out", tmp_path / "n", "--no-class-names", cwd=place)
    assert done.stderr.splitlines()[-1] == "The label of each image leaves with it."
    for file in (tmp_path / "n").rglob("*"):
        assert not file.is_file() or b"rare-disease" not in file.read_bytes()


def test_labels_stay_when_that_is_asked_for(place, photos, tmp_path):
    done = call("deliver", photos, *OPENED, "--out", tmp_path / "d", "--no-labels", cwd=place)
    assert done.returncode == 0
    assert "leaves with it" not in done.stderr
    assert "train a network once it has labels from elsewhere" in done.stderr
    assert "rare-disease" not in done.stderr
    (shard,) = (tmp_path / "d" / "data").iterdir()
    assert pq.read_table(shard).column_names == ["row_id", "image"]
    assert right("info", tmp_path / "d", cwd=place)["classes"] is None
    assert all(check["holds"] for check in right("verify", tmp_path / "d", cwd=place).values())


def test_what_a_file_manager_leaves_does_not_fail_the_check(place, tmp_path):
    shutil.copytree(place / "delivery", tmp_path / "d")
    for name in (".DS_Store", "data/Thumbs.db"):
        (tmp_path / "d" / name).write_bytes(b"icons")
    assert all(check["holds"] for check in right("verify", tmp_path / "d", cwd=place).values())
    (tmp_path / "d" / "other.db").write_bytes(b"icons")
    done = call("verify", tmp_path / "d", cwd=place)
    assert done.returncode == 1
    assert "other.db does not belong here" in done.stdout


def test_the_last_lines_say_what_the_receiver_can_do(place, tmp_path):
    done = call("deliver", "data.npz", *OPENED, "--out", tmp_path / "d", cwd=place)
    assert "get your images back" in done.stderr
    assert "obfuscation, not encryption" in done.stderr
    assert "get your images back" not in done.stdout
    quiet = call("deliver", "data.npz", *OPENED, "--out", tmp_path / "d", "--quiet", cwd=place)
    assert quiet.stderr == ""


def test_the_ledger_knows_every_delivery_and_stops_a_second_developer(place, tmp_path):
    recipient = str(IDENTITY.to_public())
    made = right(
        "keygen",
        "--layer",
        "layer.safetensors",
        "--recipient",
        recipient,
        "--out",
        tmp_path / "k",
        cwd=place,
    )
    mole.save(make_layer(seed=1), tmp_path / "second.safetensors")
    opened = ["--key", tmp_path / "k", "--identity", "identity.txt"]
    calls = [
        ("deliver", "data.npz", "--layer", layer, *opened, "--out", tmp_path / f"d{number}", "--quiet")
        for number, layer in enumerate(["layer.safetensors"] * 2 + [tmp_path / "second.safetensors"])
    ]
    assert [call(*arguments, cwd=place).returncode for arguments in calls[:2]] == [0, 0]
    for verb in ("deliver", "morph"):
        done = call(verb, *calls[2][1:], cwd=place)
        assert done.returncode == 1
        assert re.fullmatch(
            r"mole: this key was used for another first layer before, .*: give --allow-second-layer\n",
            done.stderr,
        )
    assert not (tmp_path / "d2").exists()
    said = call(*calls[2][:-1], "--allow-second-layer", cwd=place)
    assert (said.returncode, "used for another first layer before" in said.stderr) == (0, True)
    entries = [json.loads(line) for line in (tmp_path / "k.ledger").read_text().splitlines()]
    assert [Path(entry["place"]).name for entry in entries] == ["d0", "d1", "d2"]
    assert (tmp_path / "k.ledger").stat().st_mode & 0o777 == 0o600
    facts = right("info", tmp_path / "k", "--identity", "identity.txt", cwd=place)
    assert (facts["deliveries"], facts["rows delivered"], facts["first layers"]) == (2, 840, 2)
    assert facts["last delivery"] == entries[2]["date"]
    (tmp_path / "k.ledger").unlink()  # and a key without its ledger is the same key
    for named in ([made["fingerprint"]], [tmp_path / "k", "--identity", "identity.txt"]):
        found = right("ledger", *named, cwd=place)
        assert {entry["delivery_id"] for entry in found["entries"]} == {
            entry["delivery_id"] for entry in entries
        }
    shown = call("ledger", made["fingerprint"], cwd=place).stdout
    for line in ("deliveries +2", "rows +840", "copies +1"):  # the same delivery twice counts once
        assert re.search(f"^{line}$", shown, flags=re.MULTILINE)
    assert f"delivery {entries[0]['delivery_id']}, a copy in {tmp_path / 'd1'}, not sealed\n" in shown
    assert f"420 rows for first layer 2 ({make_layer(seed=1).fingerprint}), delivery " in shown


def test_a_ledger_of_nothing(place):
    assert right("ledger", "0" * 32, cwd=place)["entries"] == []
    done = call("ledger", "nothing.key", cwd=place)
    assert done.returncode == 1
    assert (
        "nothing.key does not exist: give a key's file, or the 32 digits of its fingerprint" in done.stderr
    )


def test_info_and_verify_take_urls(place):
    memory = fsspec.filesystem("memory")
    memory.put(str(place / "delivery"), "/info-test", recursive=True)
    try:
        assert right("info", "memory://info-test", cwd=place) == right("info", "delivery", cwd=place)
        assert right("verify", "memory://info-test", cwd=place) == right("verify", "delivery", cwd=place)
    finally:
        memory.rm("/info-test", recursive=True)


def test_a_damaged_delivery_fails_the_check(place, tmp_path):
    shutil.copytree(place / "delivery", tmp_path / "d")
    (tmp_path / "d" / "README.md").write_text("changed")
    done = call("verify", tmp_path / "d", cwd=place)
    assert done.returncode == 1
    assert "README.md is damaged" in done.stdout
    assert done.stderr.startswith("mole: ")


def test_a_key_is_not_made_inside_a_delivery(place, tmp_path):
    recipient = ["--recipient", IDENTITY.to_public()]
    done = call("keygen", "--layer", "layer.safetensors", "--out", "delivery/my.key", *recipient, cwd=place)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "mole: delivery/my.key would lie in a delivery, and leave with it: keep the key elsewhere\n"
    )
    assert not (place / "delivery" / "my.key").exists()
