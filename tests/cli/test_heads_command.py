"""From a front to predictions at home, on the command line: both roles, and what goes wrong."""

import json

import numpy as np
import onnx
import pyarrow.parquet as pq
import pytest
import torch

import mole
from command import call, files_in, right
from fronts import feature_key, front_model
from heads import SHARES, turning_layer, write_classes, write_telling_front
from mole.protection.front_file import read_front
from mole.protection.head import Head
from mole.protection.head_file import HomeHead, read_head, write_head
from mole.torch import front, onnx_writing
from secrets_kept import DEVELOPER, RECIPIENT

KEY = ("--layer", "layer.safetensors", "--key", "provider.key", "--identity", "me")
AT_HOME = ("--front", "front.onnx", "--head", "head.onnx")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all that both have, up to the head at home."""
    folder = tmp_path_factory.mktemp("heads")
    write_classes(folder / "photos.npz")
    write_classes(folder / "more.npz", train=400, test=1, seed=1)
    write_telling_front(folder / "front.onnx")
    mole.save(turning_layer(), folder / "layer.safetensors")
    feature_key().save(folder / "provider.key", recipients=[RECIPIENT])
    feature_key(seed=1).save(folder / "other.key", recipients=[RECIPIENT])
    (folder / "me").write_text(str(DEVELOPER) + "\n")
    right("deliver", "photos.npz", *KEY, "--front", "front.onnx", "--bits", "16", cwd=folder)
    right("train", "delivery", "--out", "trained.safetensors", cwd=folder)
    right("export-head", "trained.safetensors", *KEY, cwd=folder)
    return folder


def wrong(*arguments, cwd):
    """What is said of a call that must not work, and leaves everything as it was."""
    before = files_in(cwd)
    done = call(*arguments, cwd=cwd)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.startswith("mole: ")
    assert files_in(cwd) == before
    return done.stderr


def test_training_tells_what_it_fitted(place, tmp_path):
    told = right("train", "delivery", "--out", tmp_path / "again.safetensors", cwd=place)
    assert (told["network"], told["rows"]) == ("linear_head", 800)
    assert set(told["accuracy"]) == {"train", "test"}
    said = call("train", "delivery", "--out", tmp_path / "more.safetensors", cwd=place)
    assert "Without noise it does better: return" in said.stderr
    scored = right("evaluate", "delivery", "--checkpoint", "trained.safetensors", cwd=place)
    assert scored["accuracy"] == told["accuracy"]["test"]


def test_predictions_at_home_have_names_and_need_no_key(place, tmp_path):
    out = tmp_path / "answers.parquet"
    told = right("predict", "photos.npz", *AT_HOME, "--split", "test", "--out", out, cwd=place)
    table = pq.read_table(out)
    assert (told["rows"], table.num_rows) == (200, 200)
    assert told["accuracy"] > 0.9
    assert table.column_names == ["split", "name", "prediction", "probability", "label"]
    assert table["name"][7].as_py().startswith("sample 7 of ")
    assert right("predict", "photos.npz", *AT_HOME, "--out", out, "--force", cwd=place)["rows"] == 1000


def test_info_tells_what_front_and_head_are(place):
    shown, head = (right("info", name, cwd=place) for name in ("front.onnx", "head.onnx"))
    assert (shown["what"], shown["input shape"], shown["features"]) == ("front", [3, 8, 8], [12])
    assert (head["what"], head["features"], head["classes"], head["front"]) == (
        "head",
        12,
        2,
        shown["digest"],
    )


def test_a_head_of_wrong_scale_is_calibrated(place, tmp_path):
    """The right directions, a hundredth of the right size, and shares of classes the other way round."""
    home = read_head(place / "head.onnx")
    skewed = Head(home.head.weight / 100, home.head.intercept / 100 + np.array([-0.5, 0.5]))
    write_head(place / "skewed.onnx", HomeHead(skewed, home.front, home.clip))
    calibrated = tmp_path / "calibrated.onnx"
    said = right(
        "calibrate", "more.npz", "--front", "front.onnx", "--head", "skewed.onnx", "--out", calibrated,
        cwd=place,
    )  # fmt: skip
    assert said["accuracy before"] < 1.1 * SHARES[1]  # it always says the second class
    assert said["accuracy after"] > 0.9
    assert said["auc after"] == pytest.approx(said["auc before"], abs=0.01)
    assert said["loss after"] < said["loss before"] / 2
    (place / "skewed.onnx").unlink()
    fresh = ("predict", "photos.npz", "--front", "front.onnx", "--head", calibrated, "--split", "test")
    assert right(*fresh, "--out", tmp_path / "answers.parquet", cwd=place)["accuracy"] > 0.9


def test_a_head_that_points_elsewhere_is_adapted_and_a_good_one_is_not(place, tmp_path):
    home = read_head(place / "head.onnx")
    turned = Head(np.roll(home.head.weight, 3, axis=1), home.head.intercept)
    write_head(place / "turned.onnx", HomeHead(turned, home.front, home.clip))
    given = ("calibrate", "more.npz", "--front", "front.onnx", "--head")
    alone = right(*given, "turned.onnx", "--out", tmp_path / "scaled.onnx", cwd=place)
    better = right(*given, "turned.onnx", "--adapt", "--out", tmp_path / "adapted.onnx", cwd=place)
    assert "adapted" not in alone
    assert better["adapted"] is True
    assert better["accuracy after"] > max(0.9, alone["accuracy after"] + 0.05)
    answers = ("predict", "photos.npz", "--front", "front.onnx", "--head", tmp_path / "adapted.onnx")
    told = right(*answers, "--split", "test", "--out", tmp_path / "answers.parquet", cwd=place)
    assert told["accuracy"] > 0.9
    said = call(*given, "turned.onnx", "--adapt", "--out", tmp_path / "again.onnx", cwd=place).stderr
    assert "again.onnx has learned from clean images: keep it at home" in said
    (place / "turned.onnx").unlink()
    kept = call(*given, "head.onnx", "--adapt", "--out", tmp_path / "kept.onnx", cwd=place).stderr
    assert "weights stay as they were" in kept


@pytest.mark.parametrize(
    ("call_of", "words"),
    [
        (("predict", "photos.npz", "--front", "front.onnx"), "--front goes with --head"),
        (("predict", "photos.npz", "--head", "head.onnx"), "--head goes with --front"),
        (
            ("predict", "photos.npz", *AT_HOME, "--checkpoint", "trained.safetensors"),
            "--checkpoint is for morphed requests",
        ),
        (("predict", "photos.npz", *AT_HOME, "--device", "cpu"), "--device is for morphed requests"),
        (("predict", "delivery", "--resize", "crop"), "--resize is for images of your own"),
        (("predict", "photos.npz", *AT_HOME, "--split", "none"), "no split 'none' in the data"),
        (("predict", "nowhere", *AT_HOME), "nowhere does not exist"),
        (
            ("predict", "photos.npz", "--front", "front.onnx", "--head", "front.onnx"),
            "front.onnx is an ONNX file, but not a head",
        ),
        (
            ("predict", "photos.npz", "--front", "nowhere.onnx", "--head", "head.onnx"),
            "nowhere.onnx cannot be read",
        ),
        (
            ("export-head", "trained.safetensors", *KEY[:3], "other.key", *KEY[4:], "-o", "h.onnx"),
            "give the key of that delivery",
        ),
        (("export-head", "layer.safetensors", *KEY, "-o", "h.onnx"), "not a checkpoint"),
        (("export-head", "nowhere.safetensors", *KEY, "-o", "h.onnx"), "cannot be read"),
        (("export-head", "trained.safetensors", *KEY), "exists already"),
        (("train", "delivery", "--weights", "trained.safetensors"), "leave it out"),
        (("train", "delivery", "--out", "trained.safetensors"), "exists already"),
    ],
)
def test_mistakes_get_a_sentence(place, call_of, words):
    assert words in wrong(*call_of, cwd=place)


def test_calibrating_needs_labels_and_enough_images(place):
    np.savez(place / "mute.npz", x=np.load(place / "photos.npz")["x_test"])
    np.savez(place / "few.npz", **{name: one[:6] for name, one in np.load(place / "more.npz").items()})
    assert "give images with labels" in wrong("calibrate", "mute.npz", *AT_HOME, cwd=place)
    assert "are too few" in wrong("calibrate", "few.npz", *AT_HOME, cwd=place)


def test_a_class_that_is_rare_is_held_out_in_part(place):
    """Its images may lie where all of them would be held out at once: every fifth of the set."""
    images = dict(np.load(place / "more.npz"))
    x, y = (np.concatenate([images[name] for name in images if name[0] == kind]) for kind in "xy")
    common, rare = (np.flatnonzero(y == name) for name in (0, 1))
    order = common[:60].copy()
    order[[0, 5, 10]] = rare[:3]
    np.savez(place / "rare.npz", x=x[order], y=y[order])
    done = call("calibrate", "rare.npz", *AT_HOME, "--out", "rare.onnx", cwd=place)
    assert done.returncode == 0, done.stderr
    order[[5, 10]] = common[:2]
    np.savez(place / "single.npz", x=x[order], y=y[order])
    said = wrong("calibrate", "single.npz", *AT_HOME, "--out", "single.onnx", cwd=place)
    assert "give two or more of another class" in said


NETWORK = """
import torch
from torch import nn

def features():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(144, 20))

def classifier():
    return nn.Sequential(features(), nn.ReLU(), nn.Linear(20, 3))

class Nothing(nn.Module):
    def forward(self, images):
        return "nothing"

def nothing():
    return Nothing()

def larger():
    return nn.Linear(4, 4)
"""
MAKE = (
    "front",
    "make",
    "--input-shape",
    "3x8x8",
    "--public",
    "photos.npz",
    "--mean",
    "0.5",
    "--std",
    "0.3",
)


@pytest.fixture
def network(place, tmp_path):
    (tmp_path / "net.py").write_text(NETWORK)
    (tmp_path / "photos.npz").symlink_to(place / "photos.npz")
    return tmp_path


def quickly(module, input_shape, path, *, normalisation):
    """Another front of the same shapes: PyTorch takes ten seconds, and is tested elsewhere."""
    features = module(torch.zeros(2, *input_shape)).shape[1]
    weight = np.ones((np.prod(input_shape), features), np.float32)
    onnx.save(front_model(weight, shape=input_shape, normalisation=normalisation), path)
    return read_front(path)


def test_a_front_is_made_and_is_one(network, monkeypatch):
    monkeypatch.setattr(front, "save_front", quickly)
    told = right(*MAKE, "--network", "net:features", "--dim", "8", "--images", "50", cwd=network)
    assert (told["features"], told["public images"]) == ([8], 50)
    shown = right("info", "front.onnx", cwd=network)
    assert (shown["digest"], shown["input shape"]) == (told["digest"], [3, 8, 8])
    assert shown["mean"] == [0.5, 0.5, 0.5]
    assert "exists already" in wrong(*MAKE, "--network", "net:features", "--dim", "8", cwd=network)


def test_classes_and_mirror_images_are_used_where_they_are_asked_for(network, monkeypatch):
    made = []

    def kept(module, *rest, **more):
        made.append(module)
        return quickly(module, *rest, **more)

    monkeypatch.setattr(front, "save_front", kept)
    call_ = (*MAKE, "--network", "net:features", "--dim", "4", "--images", "50", "--force")
    for options in ([], ["--mirrored"], ["--by-class"]):
        right(*call_, *options, cwd=network)
    plain, mirrored, by_class = made
    assert isinstance(mirrored.backbone, front.Mirrored)
    assert not isinstance(plain.backbone, front.Mirrored)
    assert plain.matrix.shape == by_class.matrix.shape
    assert not torch.allclose(plain.matrix.abs(), by_class.matrix.abs(), rtol=0.01)
    images = np.load(network / "photos.npz")["x_train"]
    np.savez(network / "bare.npz", x_train=images)
    said = wrong(*call_, "--public", "bare.npz", "--by-class", cwd=network)
    assert "bare.npz has no classes" in said


def test_a_classifier_gives_its_features_without_its_last_layer(network):
    said = wrong(*MAKE, "--network", "net:classifier", "--dim", "8", cwd=network)
    assert "8 features cannot be made from 3" in said
    said = wrong(*MAKE, "--network", "net:classifier", "--dim", "30", "--without-last", cwd=network)
    assert "30 features cannot be made from 20" in said  # those before the last layer


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--network", "net:features", "--dim", "900"), "has 800 images, and 900 features need more"),
        (("--network", "net:features", "--dim", "8", "--images", "8"), "has 8 images, and 8 features need"),
        (("--network", "net:nothing", "--dim", "8"), "gives no features that a front could use"),
        (("--network", "net:features", "--without-last", "--dim", "200"), "200 features cannot be made"),
        (("--network", "net:nothing", "--without-last", "--dim", "8"), "does not end with a Linear layer"),
        (("--network", "net:nobody", "--dim", "8"), "has no function 'nobody'"),
        (("--network", "net:larger", "--dim", "8"), "the network does not run on images of 3x8x8"),
    ],
)
def test_what_makes_no_front(network, arguments, words):
    assert words in wrong(*MAKE, *arguments, cwd=network)


def test_without_the_package_that_writes_it(network, monkeypatch):
    monkeypatch.setattr(onnx_writing, "find_spec", lambda name: None)
    said = wrong(*MAKE, "--network", "net:features", "--dim", "8", cwd=network)
    assert "[export]" in said


def test_json_is_json(place, tmp_path):
    done = call("predict", "photos.npz", *AT_HOME, "-o", tmp_path / "a.parquet", "--json", "-q", cwd=place)
    assert json.loads(done.stdout)["rows"] == 1000
    assert done.stderr == ""
