"""What a training starts from, goes on with and is scored on; and a trained network, scored in one call."""

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import mole.torch.trainer as trainer_module
from glyphs import CLASSES, SHAPE, glyphs, make_key, network
from mole.errors import FileError, MoleWarning, ParameterError
from mole.exchange.split_roles import rows_by_split, split_to_score
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import open_store
from mole.torch import (
    MorphedDataset,
    evaluate,
    evaluate_on,
    export_first_layer,
    load_checkpoint,
    predict_on,
    train,
    train_on,
)

SHORT = {"epochs": 1, "learning_rate": 5e-3, "batch_size": 20, "seed": 3}
OWN = """
from mole.torch.networks import small_vgg

def few(input_shape):
    return small_vgg(input_shape, 3)

def many(input_shape):
    return small_vgg(input_shape, 6)
"""


class Place(NamedTuple):
    """Deliveries of three splits, of another key and of classes in another order; a finished training."""

    three: str
    foreign: str
    turned: str
    checkpoint: str


class StopError(Exception):
    """Somebody pulls the plug."""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    folder = tmp_path_factory.mktemp("going-on")
    arrays = {}
    for split, count in (("train", 60), ("val", 30), ("test", 40)):
        arrays[f"x_{split}"], arrays[f"y_{split}"] = glyphs(np.random.default_rng(count), count)
    first = export_first_layer(network(), SHAPE, mean=0.5, std=0.25)
    for name, key, classes in (
        ("three", 0, CLASSES),
        ("foreign", 1, CLASSES),
        ("turned", 0, CLASSES[::-1]),
    ):
        np.savez(folder / f"{name}.npz", **arrays, classes=classes)
        store = open_store(str(folder / name))
        deliver(open_source(str(folder / f"{name}.npz")), first, make_key(key), store)
    out = folder / "model.safetensors"
    train_on(folder / "three", out=out, **SHORT)
    return Place(*(str(folder / name) for name in ("three", "foreign", "turned")), str(out))


def same(one, other) -> bool:
    """Whether two checkpoints have the same weights."""
    (ours, theirs) = (load_checkpoint(path).model.state_dict() for path in (one, other))
    return all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def copied(place, tmp_path):
    return Path(shutil.copy(place.checkpoint, tmp_path / "model.safetensors"))


def test_more_epochs_are_added_to_a_finished_training(place, tmp_path):
    out, resumed, seen = copied(place, tmp_path), [], []
    more = {**SHORT, "epochs": 3}
    history = train_on(place.three, out=out, on_resume=resumed.append, on_epoch=seen.append, **more)
    assert (resumed, [epoch.number for epoch in history]) == ([1], [2, 3])
    assert tuple(seen) == history
    by_hand = load_checkpoint(place.checkpoint).model
    expected = train(
        by_hand,
        MorphedDataset(place.three),
        finished=1,
        validation=MorphedDataset(place.three, "val"),
        **more,
    )
    assert history == expected
    model, facts = load_checkpoint(out)
    assert facts.training["epochs"] == 3
    weights = by_hand.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    assert not same(out, place.checkpoint)


def test_added_epochs_resume_after_an_interruption(place, tmp_path):
    out, whole = copied(place, tmp_path), tmp_path / "whole.safetensors"
    whole.write_bytes(out.read_bytes())
    more, resumed = {**SHORT, "epochs": 3}, []
    train_on(place.three, out=whole, **more)

    def stop(epoch):
        raise StopError

    before = out.read_bytes()
    with pytest.raises(StopError):
        train_on(place.three, out=out, on_epoch=stop, **more)
    assert out.read_bytes() == before  # the finished training is there until the longer one is
    with pytest.raises(FileError, match=r"\.unfinished was made with epochs = 3: repeat that call"):
        train_on(place.three, out=out, **{**more, "epochs": 4})
    train_on(place.three, out=out, on_resume=resumed.append, **more)
    assert resumed == [2]
    assert same(out, whole)
    assert {file.name for file in tmp_path.iterdir()} == {"model.safetensors", "whole.safetensors"}


def test_a_state_that_outlived_its_training_is_not_resumed(place, tmp_path):
    """The process was killed when the checkpoint was written, and the state not yet removed."""
    resumed = []

    def stop(epoch):
        raise StopError

    with pytest.raises(StopError):
        train_on(place.three, out=tmp_path / "model.safetensors", on_epoch=stop, **SHORT)
    out = copied(place, tmp_path)
    history = train_on(place.three, out=out, on_resume=resumed.append, **{**SHORT, "epochs": 2})
    assert (resumed, [epoch.number for epoch in history]) == ([1], [2])
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_finished_training_of_another_kind_is_left_alone(place, tmp_path):
    out = copied(place, tmp_path)
    before = out.read_bytes()
    for choices, words in (
        ({"learning_rate": 1e-3}, "and was made with learning_rate = 0.005: choose another name"),
        ({"weight_decay": 0.1, "seed": 4}, "and was made with seed = 3 and without weight_decay:"),
        ({"epochs": 1}, "with 1 epoch: ask for more, choose another name, or replace it"),
    ):
        with pytest.raises(FileError, match=rf"exists already, {words}") as caught:
            train_on(place.three, out=out, **{**SHORT, "epochs": 2, **choices})
        assert caught.value.advice == {"replace": True}
    with pytest.raises(FileError, match="was made on another delivery: choose another name"):
        train_on(place.turned, out=out, **{**SHORT, "epochs": 2})
    assert out.read_bytes() == before
    train_on(place.three, out=out, replace=True, **SHORT)
    assert same(out, place.checkpoint)  # from the beginning


def test_a_checkpoint_of_the_same_key_is_fine_tuned(place, tmp_path):
    out = tmp_path / "tuned.safetensors"
    still = {**SHORT, "learning_rate": 1e-12, "seed": 9}
    train_on(place.three, weights=place.checkpoint, out=out, **still)
    tuned, start = (load_checkpoint(path).model for path in (out, place.checkpoint))
    assert torch.allclose(tuned[-1].weight, start[-1].weight, atol=1e-6)
    train_on(place.three, out=out, replace=True, **still)
    assert not torch.allclose(load_checkpoint(out).model[-1].weight, start[-1].weight, atol=1e-3)


def test_a_checkpoint_of_another_key_is_refused(place, tmp_path):
    out = tmp_path / "tuned.safetensors"
    with pytest.raises(
        FileError, match=r"was trained on data of key \w{32} and .*foreign has key \w{32}, who"
    ):
        train_on(place.foreign, weights=place.checkpoint, out=out, **SHORT)
    for work in (evaluate_on, lambda *given, **more: predict_on(*given, split="test", **more)):
        with pytest.raises(ParameterError, match="was morphed with key"):
            work(place.foreign, checkpoint=place.checkpoint)
    assert list(tmp_path.iterdir()) == []


def test_the_test_split_is_scored_once_at_the_end(place, tmp_path, monkeypatch):
    looked_at, scores = [], {}
    original = trainer_module.loss_and_accuracy
    monkeypatch.setattr(
        trainer_module,
        "loss_and_accuracy",
        lambda model, data, **more: looked_at.append(data.split) or original(model, data, **more),
    )
    out = tmp_path / "model.safetensors"
    history = train_on(place.three, out=out, on_score=scores.__setitem__, **{**SHORT, "epochs": 2})
    assert looked_at == ["val", "val"]
    assert [epoch.split for epoch in history] == ["val", "val"]
    model = load_checkpoint(out).model
    assert scores == {"test": evaluate(model, MorphedDataset(place.three, "test"))}
    assert history[-1].validation == evaluate(model, MorphedDataset(place.three, "val"))


@pytest.mark.parametrize("damage", ["labels", "shard"])
def test_a_split_that_cannot_be_scored_costs_no_training(place, tmp_path, damage):
    data = dict(np.load(f"{place.three}.npz"))
    if damage == "labels":
        data["y_test"] = np.full_like(data["y_test"], -1)  # as many a competition has them
    np.savez(tmp_path / "d.npz", **data)
    first = export_first_layer(network(), SHAPE, mean=0.5, std=0.25)
    store = open_store(str(tmp_path / "d"))
    deliver(open_source(str(tmp_path / "d.npz")), first, make_key(), store)
    if damage == "shard":
        spoil(next((tmp_path / "d" / "data").glob("test-*")))
    out, scores = tmp_path / "model.safetensors", {}
    with pytest.warns(
        MoleWarning, match=r"model\.safetensors is complete, but split 'test' cannot be scored"
    ):
        history = train_on(tmp_path / "d", out=out, on_score=scores.__setitem__, **SHORT)
    assert scores == {}
    found = evaluate(load_checkpoint(out).model, MorphedDataset(tmp_path / "d", "val"))
    assert [epoch.validation for epoch in history] == [found]
    assert sorted(path.name for path in tmp_path.glob("model*")) == [out.name]


def spoil(shard):
    """Make the samples of a shard unreadable, and leave its other columns alone."""
    chunk = pq.ParquetFile(shard).metadata.row_group(0)
    images = next(c for c in map(chunk.column, range(chunk.num_columns)) if "image" in c.path_in_schema)
    content = bytearray(shard.read_bytes())
    content[images.data_page_offset : images.data_page_offset + 40] = b"\xff" * 40
    shard.write_bytes(content)


def test_weight_decay_draws_weights_towards_zero(place, tmp_path):
    out = tmp_path / "model.safetensors"
    train_on(place.three, out=out, weight_decay=50.0, **SHORT)
    drawn, free = (load_checkpoint(path).model[-1].weight.norm() for path in (out, place.checkpoint))
    assert drawn < 0.8 * free
    with pytest.raises(ParameterError, match="weight_decay is -1"):
        train_on(place.three, out=tmp_path / "other", weight_decay=-1, **SHORT)


def test_the_outputs_of_a_network_are_compared_with_the_classes(place, tmp_path, monkeypatch):
    (tmp_path / "own_outputs.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    out, epochs = tmp_path / "model.safetensors", []
    with pytest.raises(ParameterError, match="tells 3 classes apart and the data has 4: build it for 4"):
        train_on(place.three, network="own_outputs:few", out=out, on_epoch=epochs.append, **SHORT)
    assert (epochs, out.exists()) == ([], False)
    with pytest.warns(MoleWarning, match="tells 6 classes apart and the data has 4: the others will never"):
        train_on(place.three, network="own_outputs:many", out=out, **SHORT)
    score = evaluate_on(place.three, checkpoint=out, network="own_outputs:many")
    assert score.confusion.shape == (6, 6)


def test_a_delivery_is_evaluated_in_one_call(place):
    score = evaluate_on(place.three, checkpoint=place.checkpoint)
    model = load_checkpoint(place.checkpoint).model
    test = MorphedDataset(place.three, "test")
    assert (score, score.rows) == (evaluate(model, test), 40)
    assert np.array_equal(score.confusion, evaluate(model, test).confusion)
    assert evaluate_on(place.three, checkpoint=place.checkpoint, split="val").rows == 30
    assert split_to_score(test.delivery) == "test"
    assert rows_by_split(test.delivery) == {"train": 60, "val": 30, "test": 40}


def test_classes_in_another_order_are_not_compared(place):
    with pytest.raises(ParameterError, match=r"tells rows, columns, .* apart and .* has cross, chequers"):
        evaluate_on(place.turned, checkpoint=place.checkpoint)
    with pytest.warns(MoleWarning, match=r"labels are left out: .*turned has other classes than"):
        answers = predict_on(place.turned, checkpoint=place.checkpoint, split="test")
    assert "label" not in answers.column_names
    known = predict_on(place.three, checkpoint=place.checkpoint, split="test")
    assert "label" in known.column_names
    assert set(answers["class_name"].to_pylist()) <= set(CLASSES)
