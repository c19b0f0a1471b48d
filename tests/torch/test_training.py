"""The developer trains, saves, loads and predicts on deliveries."""

import math
import sys
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

import mole
from mole.errors import FileError, MoleError, ParameterError
from mole.exchange.delivery import load_delivered_layer
from mole.provider.deliver import deliver
from mole.provider.row_numbers import RowNumbers
from mole.sources.opening import open_source
from mole.storage.stores import open_store
from mole.torch import (
    CheckpointFacts,
    MorphedDataset,
    attach,
    evaluate,
    export_first_layer,
    load_checkpoint,
    predict,
    save_checkpoint,
    train,
)
from mole.torch.models import load_model, load_weights
from mole.torch.networks import NETWORKS, build_network
from mole.torch.resume import ResumeFile
from mole.torch.weight_files import first_layer_of_file

SHAPE, CLASSES = (1, 12, 12), ("rows", "columns", "chequers", "cross")
GLYPHS = np.array([
    [[1, 1, 1], [-1, -1, -1], [1, 1, 1]],
    [[1, -1, 1], [1, -1, 1], [1, -1, 1]],
    [[1, -1, 1], [-1, 1, -1], [1, -1, 1]],
    [[-1, 1, -1], [1, 1, 1], [-1, 1, -1]],
])  # fmt: skip
COURSE = {"epochs": 6, "learning_rate": 5e-3, "batch_size": 32, "seed": 7}
FACTS = CheckpointFacts("small_vgg", SHAPE, 4, CLASSES)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Networks this small lose more than they gain by two, above all on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def glyphs(rng, count):
    """A small sign somewhere in the noise, light or dark: easy to see where neighbours are neighbours."""
    labels = rng.integers(0, 4, count)
    images = rng.normal(128, 20, (count, *SHAPE))
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(0, 10, 2)
        image[0, top : top + 3, left : left + 3] = 128 + 90 * GLYPHS[label] * rng.choice([-1, 1])
    return np.clip(images, 0, 255).astype(np.uint8), labels


def network(seed=0):
    torch.manual_seed(seed)
    return build_network("small_vgg", SHAPE, len(CLASSES))


def make_key(seed=0):
    return mole.MorphKey.generate(SHAPE, insecure_seed=bytes([seed] * 32))


class Setting(NamedTuple):
    folder: str
    arrays: dict[str, np.ndarray]
    train: MorphedDataset
    test: MorphedDataset
    layer: mole.AugmentedLayer


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    arrays = {}
    for split, count in (("train", 400), ("test", 200)):
        arrays[f"x_{split}"], arrays[f"y_{split}"] = glyphs(np.random.default_rng(count), count)
    np.savez(folder / "data.npz", **arrays, classes=CLASSES)
    first = export_first_layer(network(), SHAPE, mean=[0.5], std=[0.25])
    store = open_store(str(folder / "delivery"))
    deliver(open_source(str(folder / "data.npz")), first, make_key(), store, rows_per_shard=100)
    parts = [MorphedDataset(folder / "delivery", split) for split in ("train", "test")]
    return Setting(str(folder / "delivery"), arrays, *parts, load_delivered_layer(store))


@pytest.fixture(scope="module")
def trained(setting):
    """A network that was trained on morphed data, and how that went."""
    model = network()
    attach(model, setting.layer)
    return model, train(model, setting.train, validation=setting.test, **COURSE)


class PlainTwin(Dataset):
    """The plain rows of a delivery, in the same order and shuffled alike."""

    def __init__(self, morphed, images, labels):
        order = RowNumbers(make_key(), morphed.manifest.delivery_id, morphed.split, len(labels)).order
        plain = (images[order].astype(np.float32) / 255 - 0.5) / 0.25
        self.rows, self.sampler = (
            TensorDataset(torch.tensor(plain), torch.tensor(labels[order])),
            morphed.sampler,
        )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def test_morphed_data_teaches_what_plain_data_teaches(setting, trained):
    model = network()
    order = make_key().channel_order(model[0].out_channels)
    with torch.no_grad():  # the channels in the order of the augmented layer, and frozen like it
        model[0].weight.copy_(model[0].weight[order.copy()])
        model[0].bias.copy_(model[0].bias[order.copy()])
    model[0].requires_grad_(False)
    rows = [
        PlainTwin(morphed, setting.arrays[f"x_{morphed.split}"], setting.arrays[f"y_{morphed.split}"])
        for morphed in (setting.train, setting.test)
    ]
    history = train(model, rows[0], validation=rows[1], **COURSE)
    plain, morphed = history[-1].validation.accuracy, trained[1][-1].validation.accuracy
    assert plain > 0.95
    assert morphed > 0.95
    assert abs(plain - morphed) < 0.02
    assert history[0].loss == pytest.approx(trained[1][0].loss, rel=1e-2)  # rounding apart, the same


def test_without_the_augmented_layer_it_does_not(setting):
    model = network()
    history = train(model, setting.train, validation=setting.test, **COURSE)
    assert history[-1].validation.accuracy < 0.7


def test_the_history_and_what_is_reported(setting, trained):
    model, history = trained
    assert [epoch.number for epoch in history] == list(range(1, COURSE["epochs"] + 1))
    assert history[-1].loss < history[0].loss
    assert history[-1].accuracy > history[0].accuracy
    assert evaluate(model, setting.test) == history[-1].validation
    steps, epochs = [], []
    fresh = network()
    attach(fresh, setting.layer)
    short = {**COURSE, "epochs": 2, "batch_size": 200}
    result = train(
        fresh, setting.train, progress=lambda *now: steps.append(now), on_epoch=epochs.append, **short
    )
    assert steps == [(done, 4) for done in range(1, 5)]
    assert tuple(epochs) == result
    assert result[0].validation is None


@pytest.mark.parametrize("workers", [0, 2])
def test_the_same_seed_gives_the_same_network(setting, workers):
    def once(seed):
        model = network()
        attach(model, setting.layer)
        state = torch.random.get_rng_state()
        short = {**COURSE, "epochs": 1, "seed": seed, "workers": workers}
        history = train(model, setting.train, validation=setting.test, **short)
        assert torch.equal(torch.random.get_rng_state(), state)  # nobody else's random numbers change
        return history, model.state_dict()

    (one, weights), (same, same_weights), (other, _) = once(1), once(1), once(2)
    assert one == same
    assert all(torch.equal(weights[name], same_weights[name]) for name in weights)
    assert other != one


class StopError(Exception):
    """Somebody pulls the plug."""


def interrupted(setting, unfinished, *, after, **choices):
    """A training that stops after so many epochs."""
    model = network()
    attach(model, setting.layer)

    def stop(epoch):
        if epoch.number == after:
            raise StopError

    with pytest.raises(StopError):
        train(model, setting.train, unfinished=unfinished, on_epoch=stop, **choices)


def test_an_interrupted_training_ends_as_if_it_had_never_stopped(setting, tmp_path):
    choices = {**COURSE, "epochs": 4, "validation": setting.test}
    unfinished = ResumeFile(tmp_path / "kept", {"seed": 7})
    whole = network()
    attach(whole, setting.layer)
    expected = train(whole, setting.train, **choices)
    interrupted(setting, unfinished, after=1, **choices)
    interrupted(setting, unfinished, after=3, **choices)
    assert unfinished.epochs() == 3
    assert unfinished.path.stat().st_size < setting.layer.matrix.nbytes  # the large part is not in it
    resumed, seen = network(seed=1), []
    attach(resumed, setting.layer)
    history = train(resumed, setting.train, unfinished=unfinished, on_epoch=seen.append, **choices)
    assert history == expected
    assert [epoch.number for epoch in seen] == [4]
    weights, resumed_weights = whole.state_dict(), resumed.state_dict()
    assert all(torch.equal(weights[name], resumed_weights[name]) for name in weights)
    unfinished.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_training_is_refused(setting, tmp_path):
    path = tmp_path / "kept"
    choices = {**COURSE, "epochs": 2}
    interrupted(setting, ResumeFile(path, {"seed": 7, "network": "a"}), after=1, **choices)
    model = network()
    attach(model, setting.layer)
    for training, message in (
        ({"seed": 8, "network": "a"}, "another seed: repeat that call, or begin anew with --force"),
        ({"seed": 8, "network": "b"}, "another seed and another network"),
    ):
        with pytest.raises(FileError, match=message):
            train(model, setting.train, unfinished=ResumeFile(path, training), **choices)
        assert ResumeFile(path, training, replace=True).read() is None
    other = build_network("small_resnet", SHAPE, 4)
    with pytest.raises(FileError, match="kept does not fit the model"):
        train(other, setting.train, unfinished=ResumeFile(path, {"seed": 7, "network": "a"}), **choices)
    content = torch.load(path, weights_only=True)
    torch.save({**content, "optimizer": {}}, path)
    with pytest.raises(FileError, match="kept does not fit this network"):
        train(model, setting.train, unfinished=ResumeFile(path, {"seed": 7, "network": "a"}), **choices)
    path.write_text("no training")
    with pytest.raises(FileError, match="kept is damaged, or no training of this version"):
        train(model, setting.train, unfinished=ResumeFile(path, {"seed": 7}), **choices)
    with pytest.raises(FileError, match="cannot be written"):
        ResumeFile(tmp_path / "nowhere" / "kept", {}).keep({})


def test_a_checkpoint_needs_no_delivery(setting, trained, tmp_path):
    model, _ = trained
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, model, FACTS)
    loaded, facts = load_checkpoint(path)
    samples = torch.stack([sample for sample, _ in setting.test])
    with torch.no_grad():
        assert torch.equal(loaded(samples), model.eval()(samples))
    assert not loaded.training
    assert facts == CheckpointFacts("small_vgg", SHAPE, 4, CLASSES, setting.train.key_fingerprint)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    save_checkpoint(path, loaded, facts)  # and once more, in its own place
    assert evaluate(load_checkpoint(path).model, setting.test) == evaluate(model, setting.test)


@pytest.mark.parametrize("name", ["small_vgg", "small_resnet"])
def test_a_checkpoint_of_a_plain_network(name, tmp_path):
    torch.manual_seed(0)
    model = build_network(name, (3, 9, 12), 5).eval()
    save_checkpoint(tmp_path / "model.safetensors", model, CheckpointFacts(name, (3, 9, 12), 5))
    loaded, facts = load_checkpoint(tmp_path / "model.safetensors")
    samples = torch.randn(2, 3, 9, 12)
    assert torch.equal(loaded(samples), model(samples))
    assert facts.key_fingerprint is None


def test_a_checkpoint_of_somebodys_own_network(setting, tmp_path):
    def own():
        return nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 4))

    model, path = own(), tmp_path / "own.safetensors"
    attach(model, mole.augment(export_first_layer(model, SHAPE), make_key()))
    save_checkpoint(path, model, CheckpointFacts("my:own", SHAPE, 4))
    samples = torch.randn(2, *SHAPE)
    assert torch.equal(load_checkpoint(path, own()).model(samples), model(samples))
    with pytest.raises(FileError, match=r"'my:own', not a built-in one: give it \(model=, or --network"):
        load_checkpoint(path)

    def factory(facts):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(math.prod(facts.input_shape), 8), nn.ReLU(), nn.Linear(8, facts.classes)
        )

    assert torch.equal(load_checkpoint(path, factory).model(samples), model(samples))
    with pytest.raises(FileError, match=r"own\.safetensors does not hold a usable network"):
        load_checkpoint(path, network())


def test_files_that_are_no_checkpoints(setting, trained, tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(FileError, match="cannot be read: No such file"):
        load_checkpoint(path)
    save_checkpoint(path, trained[0], FACTS)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="is damaged"):
        load_checkpoint(path)
    for other in (b"", b"hello", b"\x00" * 100):
        path.write_bytes(other)
        with pytest.raises(FileError, match="is no checkpoint"):
            load_checkpoint(path)
    with pytest.raises(FileError, match="is no checkpoint"):
        load_checkpoint(f"{setting.folder}/augmented-layer.safetensors")
    with pytest.raises(FileError, match=r"folder .* does not exist"):
        save_checkpoint(tmp_path / "nowhere" / "model.safetensors", trained[0], FACTS)
    save_checkpoint(path, trained[0], CheckpointFacts("small_resnet", SHAPE, 4))
    with pytest.raises(FileError, match="does not hold a usable network"):
        load_checkpoint(path)
    with pytest.raises(ParameterError, match=r"bfloat16, which a checkpoint cannot hold"):
        save_checkpoint(path, network().bfloat16(), FACTS)


def test_predictions(setting, trained, tmp_path):
    model, _ = trained
    table = predict(model, setting.test, batch_size=33)
    pq.write_table(table, tmp_path / "predictions.parquet")
    table = pq.read_table(tmp_path / "predictions.parquet")
    assert table.column_names == ["row_id", "prediction", "probability"]
    assert table["row_id"].to_pylist() == setting.test.row_ids
    chances = np.array(table["probability"].to_pylist())
    assert chances.shape == (200, 4)
    assert np.allclose(chances.sum(axis=1), 1, atol=1e-5)
    answers = table["prediction"].to_numpy()
    assert np.array_equal(answers, chances.argmax(axis=1))
    assert np.mean(answers == setting.test.labels) == evaluate(model, setting.test).accuracy


def test_data_of_another_key_is_refused(setting, trained):
    first = export_first_layer(network(), SHAPE)
    model = network()
    attach(model, mole.augment(first, make_key(seed=1)))
    for work in (predict, evaluate, lambda *given: train(*given, epochs=1)):
        with pytest.raises(ParameterError, match="attach the augmented layer that came with this data"):
            work(model, setting.test)
    with pytest.raises(ParameterError, match="has no augmented layer"):
        predict(network(), setting.test)


def test_further_data_without_labels(setting, trained, tmp_path):
    np.savez(tmp_path / "more.npz", images=setting.arrays["x_test"])
    first = export_first_layer(network(), SHAPE, mean=[0.5], std=[0.25])
    store, options = open_store(str(tmp_path / "more")), {"layer_dtype": None}
    deliver(open_source(str(tmp_path / "more.npz")), first, make_key(), store, **options)
    more = MorphedDataset(tmp_path / "more")
    assert predict(trained[0], more).num_rows == 200
    for work in (evaluate, lambda *given: train(*given, epochs=1)):
        with pytest.raises(ParameterError, match="the data has no labels"):
            work(trained[0], more)


def test_wrong_choices_are_named(setting):
    model, tensors = network(), TensorDataset(torch.randn(4, *SHAPE), torch.tensor([0, 1, 4, 2]))
    for name in ("epochs", "batch_size", "learning_rate"):
        with pytest.raises(ParameterError, match=f"{name} is 0"):
            train(model, tensors, **{**COURSE, name: 0})
    with pytest.raises(ParameterError, match=r"classes 0 to 3 and the data has labels from 0 to 4"):
        train(model, tensors, **COURSE)
    with pytest.raises(ParameterError, match="device 'toaster' cannot be used here"):
        train(model, tensors, device="toaster", **COURSE)
    with pytest.raises(ParameterError, match="the data set has no rows"):
        evaluate(model, TensorDataset(torch.randn(0, *SHAPE), torch.zeros(0, dtype=torch.int64)))
    with pytest.raises(ParameterError, match="all its parameters are frozen"):
        train(network().requires_grad_(False), setting.train, epochs=1)
    with pytest.raises(MoleError, match="one row of class scores"):
        evaluate(nn.Sequential(nn.Conv2d(1, 4, 3)), setting.test)
    broken = TensorDataset(torch.full((4, *SHAPE), torch.nan), torch.tensor([0, 1, 3, 2]))
    with pytest.raises(ParameterError, match="try a smaller learning rate"):
        train(model, broken, epochs=1)


@pytest.mark.parametrize(("name", "shape"), [(n, s) for n in NETWORKS for s in ((3, 32, 32), (1, 35, 40))])
def test_built_in_networks_take_an_augmented_layer(name, shape):
    model = build_network(name, shape, 7)
    assert model(torch.randn(2, *shape)).shape == (2, 7)
    assert export_first_layer(model, shape).kernel == (3, 3)


def test_the_sizes_of_built_in_networks():
    def products(model, shape):
        """Multiplications of the convolutions, for each of them."""
        found = []
        for part in model.modules():
            if isinstance(part, nn.Conv2d):
                part.register_forward_hook(
                    lambda layer, _, out: found.append(layer.weight[0].numel() * out[0].numel())
                )
        model(torch.randn(2, *shape))
        return found

    assert len(products(build_network("vgg16", (3, 32, 32), 10), (3, 32, 32))) == 13
    for name in ("small_vgg", "small_resnet"):
        assert 5e6 < sum(products(build_network(name, (1, 28, 28), 10), (1, 28, 28))) < 25e6


@pytest.mark.parametrize(
    ("name", "shape", "classes", "message"),
    [
        ("alexnet", SHAPE, 4, "no built-in network 'alexnet': use small_vgg, small_resnet, vgg16"),
        ("vgg16", (3, 28, 28), 4, "3x28x28 does not fit this network: it takes images of at least 32x32"),
        ("small_vgg", (64,), 4, "shape 64 does not fit this network"),
        ("small_resnet", SHAPE, 1, "1 classes has nothing to learn"),
    ],
)
def test_networks_that_cannot_be_built(name, shape, classes, message):
    with pytest.raises(ParameterError, match=message):
        build_network(name, shape, classes)


FACTORIES = """
from torch import nn
def small(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))
def bad():
    raise RuntimeError("no weights here")
def text():
    return "model"
number = 3
"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
    (tmp_path / "my_factories.py").write_text(FACTORIES)
    (tmp_path / "my_broken.py").write_text("import a_module_that_is_not_there")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_factories", None)


@pytest.mark.usefixtures("factories")
def test_a_model_by_the_name_of_its_factory():
    path = list(sys.path)
    assert load_model("my_factories:small", input_shape=SHAPE, classes=6)[1].out_features == 6
    assert sys.path == path


@pytest.mark.usefixtures("factories")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_factories", "write it as module:function"),
        (":small", "write it as module:function"),
        ("my_factoriez:small", "'my_factoriez' cannot be imported: No module named"),
        ("my_broken:small", "'my_broken' cannot be imported: No module named 'a_module"),
        ("my_factories:smal", "has no function 'smal'"),
        ("my_factories:number", "has no function 'number'"),
        ("my_factories:bad", "could not make a model: no weights here"),
        ("my_factories:text", "gives a str, not a torch.nn.Module"),
    ],
)
def test_factories_that_do_not_work(name, message):
    with pytest.raises(ParameterError, match=message):
        load_model(name)


def test_weights_from_files(tmp_path):
    from safetensors.torch import save_file

    model, samples = network(seed=1).eval(), torch.randn(2, *SHAPE)
    torch.save(model.state_dict(), tmp_path / "one.pt")
    torch.save({"state_dict": model.state_dict(), "epoch": 3}, tmp_path / "two.pth")
    save_file(model.state_dict(), tmp_path / "three.safetensors")
    save_checkpoint(tmp_path / "four.safetensors", model, FACTS)
    torch.save({"model": model.state_dict(), "optimizer": {"state": {}}}, tmp_path / "five.pt")
    torch.save({"model": {"state_dict": model.state_dict()}}, tmp_path / "six.pt")
    for name in (
        "one.pt", "two.pth", "three.safetensors", "four.safetensors", "five.pt", "six.pt",
    ):  # fmt: skip
        other = network(seed=2).eval()
        load_weights(other, tmp_path / name)
        assert torch.equal(other(samples), model(samples))


def test_a_first_layer_from_a_file_of_weights(tmp_path, rng):
    from safetensors.torch import save_file

    def tensor(*shape):
        return torch.from_numpy(rng.normal(size=shape).astype(np.float32))

    weights = {
        "stem.weight": tensor(6, 3, 3, 3), "stem.bias": tensor(6), "body.weight": tensor(8, 6, 3, 3),
        "head.weight": tensor(10, 8),
    }  # fmt: skip
    save_file(weights, tmp_path / "sorted.safetensors")  # body comes first in it
    torch.save({"model": weights, "epoch": 1}, tmp_path / "nested.pt")
    for file in ("sorted.safetensors", "nested.pt"):
        name, layer = first_layer_of_file(tmp_path / file, (3, 8, 8), stride=2, padding=1)
        assert name == "stem.weight"
        assert np.array_equal(layer.weight, weights["stem.weight"].numpy())
        assert np.array_equal(layer.bias, weights["stem.bias"].numpy())
        assert (layer.stride, layer.padding, layer.groups) == ((2, 2), ((1, 1), (1, 1)), 1)
    name, layer = first_layer_of_file(tmp_path / "nested.pt", (2, 4))
    assert (name, layer.kind) == ("head.weight", "linear")


def test_what_a_file_of_weights_does_not_tell_is_asked_for(tmp_path):
    twins = {"a.weight": torch.ones(4, 3, 3, 3), "b.weight": torch.ones(6, 1, 3, 3), "c": torch.ones(2)}
    torch.save(twins, tmp_path / "twins.pt")
    path = tmp_path / "twins.pt"
    for choices, message in (
        ({"stride": 1, "padding": 0}, "choose one with --tensor: a.weight, b.weight$"),
        ({"tensor": "c"}, "has no weight 'c': it has a.weight, b.weight$"),
        ({"tensor": "a.weight"}, "does not tell how the convolution 'a.weight' strides and pads: say --st"),
        ({"tensor": "a.weight", "stride": 1}, "say --stride and --padding"),
    ):
        with pytest.raises(ParameterError, match=message):
            first_layer_of_file(path, (3, 8, 8), **choices)
    with pytest.raises(ParameterError, match=r"no weight that takes samples of 5x8x8: it has a\.weight"):
        first_layer_of_file(path, (5, 8, 8))
    _, layer = first_layer_of_file(path, (3, 8, 8), tensor="b.weight", stride=1, padding=0)
    assert layer.groups == 3
    torch.save({"w": torch.ones(5, 192)}, path)
    with pytest.raises(ParameterError, match="'w' is a linear layer: leave out"):
        first_layer_of_file(path, (3, 8, 8), stride=1)


def test_files_from_which_no_plain_first_layer_can_be_taken(setting, trained, tmp_path):
    first = export_first_layer(network(), SHAPE)
    mole.save(first, tmp_path / "first.safetensors")
    mole.save(setting.layer, tmp_path / "augmented.safetensors")
    save_checkpoint(tmp_path / "morphed.safetensors", trained[0], FACTS)
    for name, message in (
        ("first", "is a first layer already: hand it over as it is"),
        ("augmented", "is an augmented layer"),
        ("morphed", "was trained on morphed data"),
    ):
        with pytest.raises(FileError, match=message):
            first_layer_of_file(tmp_path / f"{name}.safetensors", SHAPE, stride=1, padding=1)
    save_checkpoint(tmp_path / "plain.safetensors", network(), FACTS)
    _, layer = first_layer_of_file(tmp_path / "plain.safetensors", SHAPE, stride=1, padding=1)
    assert np.array_equal(layer.weight, first.weight)


class Evil:
    def __reduce__(self):
        return (print, ("code that must not run",))


def test_weights_from_wrong_files(tmp_path, capsys):
    torch.save(Evil(), tmp_path / "evil.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    torch.save(build_network("small_resnet", SHAPE, 4).state_dict(), tmp_path / "other.pt")
    wide = build_network("small_vgg", SHAPE, 9).state_dict()
    torch.save(wide, tmp_path / "wide.pt")
    (tmp_path / "text.pt").write_text("hello")
    (tmp_path / "text.safetensors").write_text("hello")
    (tmp_path / "model.onnx").write_text("hello")
    (tmp_path / "folder.pt").mkdir()
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, message in (
        ("evil.pt", "holds no weights, or it is damaged"),
        ("list.pt", "holds something else than weights"),
        ("other.pt", r"does not fit the model: '0.bias' is missing, .* and \d+ more"),
        ("wide.pt", r"does not fit the model: '\d+.weight' is \(9, 256\) and should be \(4, 256\)"),
        ("text.pt", "holds no weights, or it is damaged"),
        ("text.safetensors", "holds no weights, or it is damaged"),
        ("model.onnx", "is no file of weights: give .safetensors, .pt, .pth"),
        ("missing.pt", "missing.pt cannot be read: No such file"),
        ("folder.pt", "folder.pt cannot be read: Is a directory"),
    ):
        with pytest.raises(FileError, match=message):
            load_weights(model, tmp_path / name)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert "must not run" not in capsys.readouterr().out
