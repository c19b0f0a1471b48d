"""Whole tasks in one call: from a delivery to a checkpoint, and from requests to answers."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import mole.exchange.delivery as delivery_module
from glyphs import SHAPE, make_key, network
from mole.errors import DeliveryError, FileError, ParameterError
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import Manifest
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.checked import load_checked
from mole.storage.stores import open_store
from mole.torch import (
    CheckpointFacts,
    Epoch,
    MorphedDataset,
    attach,
    export_first_layer,
    load_checkpoint,
    predict,
    predict_on,
    save_checkpoint,
    shard_cache,
    train,
    train_on,
)

SHORT = {"epochs": 2, "learning_rate": 5e-3, "batch_size": 100, "seed": 3}


class StopError(Exception):
    """Somebody pulls the plug."""


def stop_after(number):
    def stop(epoch):
        if epoch.number == number:
            raise StopError

    return stop


@pytest.fixture(scope="module")
def checkpoint(setting, tmp_path_factory):
    path = tmp_path_factory.mktemp("workflows") / "model.safetensors"
    history = train_on(setting.folder, out=path, **SHORT)
    return path, history


@pytest.fixture(scope="module")
def requests(setting, tmp_path_factory):
    """Morphed data for predictions: one split, without labels and an augmented layer."""
    folder = tmp_path_factory.mktemp("requests")
    np.savez(folder / "more.npz", images=setting.arrays["x_test"])
    first = export_first_layer(network(), SHAPE, mean=[0.5], std=[0.25])
    store = open_store(str(folder / "requests"))
    deliver(open_source(str(folder / "more.npz")), first, make_key(), store, layer_dtype=None)
    return folder / "requests"


def test_it_does_what_its_parts_do(setting, checkpoint):
    path, history = checkpoint
    model = network(seed=SHORT["seed"])
    attach(model, setting.layer)
    assert train(model, setting.train, **SHORT) == history  # the test split is left alone
    assert all(isinstance(epoch, Epoch) for epoch in history)
    loaded, facts = load_checkpoint(path)
    weights = model.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in loaded.state_dict().items())
    manifest = setting.train.delivery.manifest
    assert facts == CheckpointFacts(
        "small_vgg", SHAPE, 4, manifest.classes, manifest.key_fingerprint, facts.training
    )
    assert facts.training == {
        **SHORT, "delivery": manifest.delivery_id, "network": "small_vgg", "weights": None, "device": None,
    }  # fmt: skip
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_a_delivery_is_opened_once_and_its_manifest_read_once(setting, tmp_path, monkeypatch):
    calls = []
    for owner, name in ((delivery_module, "open_store"), (shard_cache, "open_store")):
        original = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *given, _original=original: calls.append("open") or _original(*given)
        )
    read = Manifest.stored
    monkeypatch.setattr(Manifest, "stored", lambda store: calls.append("manifest") or read(store))
    train_on(setting.folder, out=tmp_path / "model.safetensors", **SHORT)
    assert calls == ["open", "manifest"]
    calls.clear()
    predict_on(setting.folder, checkpoint=tmp_path / "model.safetensors", split="test")
    assert calls == ["open", "manifest"]
    delivery = Delivery.open(setting.folder)
    calls.clear()
    train_on(delivery, out=tmp_path / "model.safetensors", replace=True, **SHORT)
    predict_on(delivery, checkpoint=tmp_path / "model.safetensors", split="test")
    assert calls == []


def test_an_interrupted_call_resumes_and_writes_the_same_checkpoint(setting, checkpoint, tmp_path):
    path, expected = checkpoint
    out, resumed, seen = tmp_path / "model.safetensors", [], []
    with pytest.raises(StopError):
        train_on(setting.folder, out=out, on_epoch=stop_after(1), **SHORT)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors.unfinished"]
    history = train_on(setting.folder, out=out, on_resume=resumed.append, on_epoch=seen.append, **SHORT)
    assert history == expected
    assert (resumed, [epoch.number for epoch in seen]) == ([1], [2])
    (ours, header), (theirs, same_header) = load_checked(out), load_checked(path)
    assert header == same_header
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_another_training_is_not_resumed(setting, tmp_path):
    out, resumed = tmp_path / "model.safetensors", []
    with pytest.raises(StopError):
        train_on(setting.folder, out=out, on_epoch=stop_after(1), **SHORT)
    torch.save(network(seed=9).state_dict(), tmp_path / "weights.pt")
    for name, value, words in (
        ("seed", 4, "with seed = 3"),
        ("epochs", 3, "with epochs = 2"),
        ("weight_decay", 0.1, "without weight_decay"),
        ("weights", tmp_path / "weights.pt", "without weights"),
    ):
        with pytest.raises(FileError, match=rf"\.unfinished was made {words}: repeat that") as caught:
            train_on(setting.folder, out=out, on_resume=resumed.append, **{**SHORT, name: value})
        assert caught.value.advice == {"replace": True}
    other = {**SHORT, "seed": 4}
    assert len(train_on(setting.folder, out=out, replace=True, on_resume=resumed.append, **other)) == 2
    assert resumed == []


def test_the_resume_file_is_what_it_was(setting, tmp_path):
    """A training that an earlier version began has to resume: names and values in the file stay."""
    out = tmp_path / "model.safetensors"
    with pytest.raises(StopError):
        train_on(setting.folder, out=out, on_epoch=stop_after(1), **SHORT)
    content = torch.load(f"{out}.unfinished", weights_only=True)
    assert list(content) == [
        "format", "training", "weights", "optimizer", "schedule", "random", "steps", "epochs",
    ]  # fmt: skip
    assert content["format"] == "mole-unfinished-training 1"
    assert json.loads(content["training"]) == {
        "delivery": setting.train.delivery.manifest.delivery_id,
        "network": "small_vgg",
        "weights": None,
        "epochs": 2,
        "batch_size": 100,
        "learning_rate": 5e-3,
        "seed": 3,
        "device": None,
    }
    ((number, loss, accuracy, validation),) = content["epochs"]
    assert (number, content["steps"]) == (1, 4)
    assert 0 <= accuracy <= 1
    assert loss > 0
    assert validation is None  # there is no split for it


def test_training_starts_from_given_weights(setting, tmp_path):
    start = network(seed=9)
    torch.save(start.state_dict(), tmp_path / "weights.pt")
    out = tmp_path / "model.safetensors"
    frozen = {**SHORT, "learning_rate": 1e-12, "epochs": 1}
    train_on(setting.folder, out=out, weights=tmp_path / "weights.pt", **frozen)
    kept = load_checkpoint(out).model.state_dict()["3.weight"]
    assert torch.allclose(kept, start.state_dict()["3.weight"], atol=1e-6)
    train_on(setting.folder, out=out, replace=True, **frozen)
    kept = load_checkpoint(out).model.state_dict()["3.weight"]
    assert not torch.allclose(kept, start.state_dict()["3.weight"], atol=1e-6)


def test_nobody_elses_random_numbers_change(setting, tmp_path):
    state = torch.random.get_rng_state()
    train_on(setting.folder, out=tmp_path / "model.safetensors", **SHORT)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_answers_in_memory_and_in_a_file(setting, checkpoint, requests, tmp_path):
    path, _ = checkpoint
    out = tmp_path / "answers.parquet"
    answers = predict_on(requests, checkpoint=path, out=out)
    assert pq.read_table(out).equals(answers)
    model, facts = load_checkpoint(path)
    assert answers.equals(predict(model, MorphedDataset(requests), class_names=facts.class_names))
    assert [file.name for file in tmp_path.iterdir()] == ["answers.parquet"]
    assert predict_on(setting.folder, checkpoint=path, split="train").num_rows == 400


@pytest.mark.parametrize("work", ["train", "predict"])
def test_an_output_is_replaced_only_when_asked_and_checked_before_the_work(
    setting, checkpoint, tmp_path, work
):
    def call(out, **choices):
        if work == "train":
            return train_on(setting.folder, out=out, **SHORT, **choices)
        return predict_on(setting.folder, checkpoint=checkpoint[0], split="test", out=out, **choices)

    out = tmp_path / "out"
    out.write_text("precious")
    with pytest.raises(FileError, match=r"out exists already: .*: give replace=True") as caught:
        call(out)
    assert caught.value.advice == {"replace": True}
    assert out.read_text() == "precious"
    with pytest.raises(FileError, match="is a folder, and a file is to be written"):
        call(tmp_path, replace=True)
    with pytest.raises(FileError, match=r"cannot be written: there is no folder .*nowhere"):
        call(tmp_path / "nowhere" / "out")
    call(out, replace=True)
    assert out.read_bytes() != b"precious"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_deliveries_that_cannot_be_trained_on(setting, requests, tmp_path):
    out = tmp_path / "model.safetensors"
    with pytest.raises(DeliveryError, match="came without an augmented layer"):
        train_on(requests, out=out)
    with pytest.raises(DeliveryError, match="does not exist: give the folder of a delivery"):
        train_on(tmp_path / "nowhere", out=out)
    shutil.copytree(setting.folder, tmp_path / "damaged")
    (tmp_path / "damaged" / "augmented-layer.safetensors").write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"augmented-layer\.safetensors"):
        train_on(tmp_path / "damaged", out=out)
    assert not out.exists()


def test_requests_that_cannot_be_answered(setting, checkpoint, tmp_path):
    path, _ = checkpoint
    with pytest.raises(ParameterError, match="has 2 splits") as caught:
        predict_on(setting.folder, checkpoint=path)
    assert set(caught.value.advice["split"]) == {"train", "test"}
    with pytest.raises(DeliveryError, match="has no split 'none'"):
        predict_on(setting.folder, checkpoint=path, split="none")
    save_checkpoint(tmp_path / "plain.safetensors", network(), CheckpointFacts("small_vgg", SHAPE, 4))
    with pytest.raises(ParameterError, match="has no augmented layer"):
        predict_on(setting.folder, checkpoint=tmp_path / "plain.safetensors", split="test")


def test_a_network_of_ones_own_is_built_by_its_name(setting, tmp_path, monkeypatch):
    (tmp_path / "own_networks.py").write_text(
        "from mole.torch.networks import small_vgg\n"
        "def own(input_shape, classes):\n    return small_vgg(input_shape, classes)\n"
    )
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "model.safetensors"
    train_on(setting.folder, network="own_networks:own", out=out, **SHORT)
    with pytest.raises(FileError, match="'own_networks:own', which is not built in") as caught:
        predict_on(setting.folder, checkpoint=out, split="test")
    assert caught.value.advice == {"network": None}
    answers = predict_on(setting.folder, checkpoint=out, split="test", network="own_networks:own")
    assert answers.num_rows == 200
    assert json.loads(load_checked(out)[1]["network"]) == "own_networks:own"
