"""A head goes from the developer to the provider: of the same rows it says the same on both sides."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pyarrow.parquet as pq
import pytest

import mole
from deliveries import SHAPE, make_layer
from fronts import feature_key, feature_layer, write_front
from heads import protected, turning_layer, write_classes, write_telling_front
from mole.errors import DeliveryError, FileError, MoleWarning, ParameterError
from mole.exchange.head_checkpoint import read_trained_head
from mole.protection.channel import clip
from mole.protection.front_runner import FrontRunner
from mole.protection.head_file import is_head, read_head, write_head
from mole.provider.at_home import AtHome
from mole.provider.heads import home_head
from mole.storage.checked import load_checked, save_checked


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heads")
    data = write_classes(folder / "data.npz")
    write_telling_front(folder / "front.onnx")
    delivery = protected(folder / "delivery", data)
    mole.torch.fit_head_on(delivery, out=folder / "head.safetensors")
    write_head(folder / "head.onnx", home_head(folder / "head.safetensors", turning_layer(), feature_key()))
    return folder


def noisy_rows(delivery, split="test"):
    """The noisy features of a split, plain, in the order of its row ids; only the provider can do that."""
    shards = list(delivery.shards(split))
    rows = np.concatenate([delivery.encoding.decode(shard.values) for shard in shards])
    return feature_key().morphing.unmorph(rows), [one for shard in shards for one in shard.row_ids]


def test_both_sides_say_the_same_of_the_same_noisy_rows(place):
    delivery = mole.Delivery.open(place / "delivery")
    theirs = mole.torch.predict_on(delivery, checkpoint=place / "head.safetensors", split="test")
    rows, ids = noisy_rows(delivery)
    ours = read_head(place / "head.onnx").head.probabilities(rows)
    assert theirs["row_id"].to_pylist() == ids
    stacked = np.stack(theirs["probability"].to_pylist())
    assert np.allclose(stacked, ours, atol=1e-4)
    assert stacked[:, 1].std() > 0.1  # it says something


def test_without_the_secret_order_they_would_not(place):
    """The twin: the head as it came, without undoing the order of channels."""
    trained = read_trained_head(place / "head.safetensors")
    wrong = trained.head.weight @ turning_layer().weight
    right = read_head(place / "head.onnx").head.weight
    assert not np.allclose(wrong, right, atol=0.1 * np.abs(right).max())


def test_a_runtime_gives_what_the_library_gives(place):
    home = read_head(place / "head.onnx")
    rows = np.random.default_rng(0).normal(size=(9, home.head.weight.shape[1])).astype(np.float32)
    (found,) = onnxruntime.InferenceSession(place / "head.onnx").run(None, {"features": rows})
    assert np.allclose(found, home.head.probabilities(rows), atol=1e-5)


def test_images_at_home_are_told_apart_better_than_noisy_rows(place):
    home = AtHome.open(place / "front.onnx", place / "head.onnx").predict(place / "data.npz", split="test")
    delivery = mole.Delivery.open(place / "delivery")
    away = mole.torch.evaluate_on(delivery, checkpoint=place / "head.safetensors", split="test")
    accuracy = np.mean(home["prediction"].to_numpy() == home["label"].to_numpy())
    assert accuracy > 0.9 > away.accuracy
    assert home["name"][3].as_py().startswith("sample 3 of ")


def test_features_at_home_are_clipped_as_in_the_delivery(place):
    at_home = AtHome.open(place / "front.onnx", place / "head.onnx")
    short = replace(at_home, home=replace(at_home.home, clip=0.3))
    source = mole.open_source(place / "data.npz")
    plain = at_home.preparation.plain_samples(source.splits["test"], range(200))
    with FrontRunner(at_home.front) as run:
        features = run(plain)
    for one in (at_home, short):
        expected = one.home.head.scores(clip(features, one.home.clip)[0])
        seen = one.look(source)
        assert np.allclose(seen.scores[np.array(seen.splits) == "test"], expected, atol=1e-5)
    assert not np.allclose(expected, at_home.home.head.scores(features), atol=0.1)  # the clip is felt


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_in_fewer_bits_and_with_a_layer_that_stretches(tmp_path, dtype):
    data = write_classes(tmp_path / "data.npz", train=300, test=50)
    write_telling_front(tmp_path / "front.onnx")
    first, out = turning_layer(), tmp_path / "head.safetensors"
    stretch = np.linspace(0.5, 2, first.channels).astype(np.float32)
    layer = mole.FirstLayer.linear(first.weight * stretch[:, None], None, input_shape=first.input_shape)
    layer_dtype = "float16" if dtype == "float16" else "float32"
    delivery = protected(tmp_path / "out", data, layer=layer, dtype=dtype, layer_dtype=layer_dtype)
    mole.torch.fit_head_on(delivery, out=out)
    theirs = mole.torch.predict_on(delivery, checkpoint=out, split="test")["probability"].to_pylist()
    ours = home_head(out, layer, feature_key()).head.probabilities(noisy_rows(delivery)[0])
    assert np.allclose(np.stack(theirs), ours, atol=2e-2 if dtype == "float16" else 1e-4)


def test_another_key_is_refused(place):
    with pytest.raises(FileError, match=r"was trained on data of key .* give the key of that delivery"):
        home_head(place / "head.safetensors", turning_layer(), feature_key(seed=1))


def test_another_first_layer_is_refused(place):
    with pytest.raises(FileError, match="trained with another first layer"):
        home_head(place / "head.safetensors", turning_layer(seed=1), feature_key())
    with pytest.raises(FileError, match="give that of the delivery"):
        home_head(place / "head.safetensors", feature_layer(features=5), feature_key())


def test_another_front_is_refused(place, tmp_path):
    write_front(tmp_path / "front.onnx")
    with pytest.raises(FileError, match="learned from features of another front"):
        AtHome.open(tmp_path / "front.onnx", place / "head.onnx")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"mode": "\x1b[2Jnone"}, r"head\.onnx wants mode '[^\x1b]*none', which is unknown"),
        ({"resize": "fold"}, r"head\.onnx wants resize 'fold', which is unknown"),
        ({"threshold": 7.0}, r"head\.onnx is an ONNX file, but not a head: its threshold is 7"),
    ],
    ids=["mode", "resize", "threshold"],
)
def test_a_head_that_asks_for_what_cannot_be_is_refused(place, tmp_path, wrong, words):
    """The developer's words went into it; none of them controls a terminal."""
    write_head(tmp_path / "head.onnx", replace(read_head(place / "head.onnx"), **wrong))
    with pytest.raises(FileError, match=words):
        AtHome.open(place / "front.onnx", tmp_path / "head.onnx")


def test_images_that_are_taken_in_another_way_are_told_of(place, tmp_path):
    write_head(
        tmp_path / "head.onnx", replace(read_head(place / "head.onnx"), resize="stretch", mode="RGB")
    )
    with pytest.warns(MoleWarning, match="head.onnx learned from images with resize 'stretch', and these"):
        other = AtHome.open(place / "front.onnx", tmp_path / "head.onnx", resize="crop", mode="RGB")
    assert other.preparation.resize == "crop"
    same = AtHome.open(
        place / "front.onnx", tmp_path / "head.onnx", resize="stretch"
    )  # a warning is an error
    assert (same.preparation.resize, same.preparation.mode) == ("stretch", "RGB")


def changed(place, tmp_path, change):
    """The developer's file with something in it changed, and its checksum right."""
    tensors, metadata = load_checked(place / "head.safetensors")
    tensors = {name: np.array(one) for name, one in tensors.items()}
    metadata = {name: text for name, text in metadata.items() if name != "sha256"}
    change(tensors, metadata)
    save_checked(tmp_path / "changed.safetensors", tensors, metadata)
    return tmp_path / "changed.safetensors"


def retrained(metadata, old, new):
    assert old in metadata["training"]
    metadata["training"] = metadata["training"].replace(old, new)


HOSTILE = {
    "not a number": (lambda t, m: t["2.weight"].__setitem__((0, 0), np.nan), "NaN"),
    "other shape": (lambda t, m: t.update({"2.weight": t["2.weight"][:, :3]}), "shapes"),
    "more tensors": (lambda t, m: t.update({"3.weight": t["2.weight"]}), "other tensors"),
    "fewer names": (lambda t, m: m.update(class_names='["a"]'), "names"),
    "no training": (lambda t, m: m.pop("training"), "trained on"),
    "wrong front": (lambda t, m: retrained(m, '"front": "', '"front": "x'), "digest"),
    "wrong clip": (lambda t, m: retrained(m, '"clip": 1.0', '"clip": -1.0'), "clip"),
    "other network": (lambda t, m: m.update(network='"small_vgg"'), "only a linear head"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_head_is_refused(place, tmp_path, name):
    change, words = HOSTILE[name]
    path = changed(place, tmp_path, change)
    with pytest.raises(FileError, match=words):
        home_head(path, turning_layer(), feature_key())


def test_a_damaged_head_is_read_or_refused(place, tmp_path):
    """Bits flipped at random, and ends cut off: never anything but a head or a sentence."""
    rng, whole = np.random.default_rng(0), (place / "head.onnx").read_bytes()
    refused = 0
    for case in range(300):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), 1 + case % 3):
            content[at] ^= 1 << int(rng.integers(8))
        cut = content if case % 5 else content[: int(rng.integers(len(content)))]
        (tmp_path / "head.onnx").write_bytes(cut)
        try:
            home = read_head(tmp_path / "head.onnx")
        except FileError:
            refused += 1
        else:
            assert np.isfinite(home.head.weight).all()
    assert refused > 100


def test_what_is_no_head_is_refused(place, tmp_path):
    with pytest.raises(FileError, match="not a head"):
        read_head(place / "front.onnx")
    assert is_head(place / "head.onnx")
    assert not is_head(place / "front.onnx")
    with pytest.raises(FileError, match="not a front"):
        AtHome.open(place / "head.onnx", place / "head.onnx")


def test_a_head_needs_a_protected_delivery_and_its_own_first_layer(place, tmp_path):
    data, out = place / "data.npz", tmp_path / "head.safetensors"
    key = mole.MorphKey.generate(SHAPE)
    narrow = protected(tmp_path / "narrow", data, layer=feature_layer(), seed=2)
    images = mole.deliver(data, make_layer(), key, tmp_path / "images").delivery
    bias = mole.FirstLayer.linear(turning_layer().weight, np.ones(12, "f"), input_shape=(12,))
    biased = protected(tmp_path / "biased", data, layer=bias, seed=3)
    mute = protected(tmp_path / "mute", data, labels=False)
    with pytest.raises(ParameterError, match="makes 7 of 12 features"):
        mole.torch.fit_head_on(narrow, out=out)
    with pytest.raises(ParameterError, match="does more than turn features"):
        mole.torch.fit_head_on(biased, out=out)
    with pytest.raises(ParameterError, match="holds images and no features"):
        mole.torch.fit_head_on(images, out=out)
    with pytest.raises(DeliveryError, match="no labels"):
        mole.torch.fit_head_on(mute, out=out)
    assert not out.exists()


def test_labels_follow_the_names_of_classes(place):
    """Images whose classes come in another order, or are others, or some of them are missing."""
    at_home = AtHome.open(place / "front.onnx", place / "head.onnx")
    named = replace(at_home, home=replace(at_home.home, class_names=("ill", "well")))
    source = mole.open_source(place / "data.npz")
    plain, turned = (
        one.look(replace(source, classes=names))
        for one, names in ((at_home, None), (named, ("well", "ill")))
    )
    assert (turned.labels == 1 - plain.labels).all()
    assert turned.class_names == ("ill", "well")
    for one, names in ((named, ("cat", "dog")), (at_home, ("ill", "well", "unknown"))):
        with pytest.warns(MoleWarning, match="labels are left out"):
            assert one.look(replace(source, classes=names)).labels is None


def test_predictions_can_be_written_and_read(place, tmp_path):
    answers = AtHome.open(place / "front.onnx", place / "head.onnx").predict(place / "data.npz")
    pq.write_table(answers, tmp_path / "answers.parquet")
    assert set(pq.read_table(tmp_path / "answers.parquet")["split"].to_pylist()) == {"train", "test"}
