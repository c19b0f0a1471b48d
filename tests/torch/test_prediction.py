"""Answers for morphed requests, and data that a model must refuse."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import mole
from glyphs import CLASSES, SHAPE, make_key, network
from mole.errors import ParameterError
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import open_store
from mole.torch import (
    MorphedDataset,
    attach,
    evaluate,
    export_first_layer,
    predict,
    train,
)


def test_predictions(setting, trained, tmp_path):
    model, _ = trained
    table = predict(model, setting.test, batch_size=33)
    pq.write_table(table, tmp_path / "predictions.parquet")
    table = pq.read_table(tmp_path / "predictions.parquet")
    assert table.column_names == ["row_id", "prediction", "class_name", "probability", "label"]
    assert table["row_id"].to_pylist() == setting.test.row_ids
    chances = np.array(table["probability"].to_pylist())
    assert chances.shape == (200, 4)
    assert np.allclose(chances.sum(axis=1), 1, atol=1e-5)
    answers = table["prediction"].to_numpy()
    assert np.array_equal(answers, chances.argmax(axis=1))
    assert table["class_name"].to_pylist() == [CLASSES[answer] for answer in answers]
    assert json.loads(table.schema.metadata[b"class_names"]) == list(CLASSES)
    assert np.array_equal(table["label"].to_numpy(), setting.test.labels)
    assert np.mean(answers == setting.test.labels) == evaluate(model, setting.test).accuracy


def test_a_model_is_afterwards_in_the_mode_that_it_was_in(setting):
    model = network()
    attach(model, setting.layer)
    model.train()
    model[1].eval()  # somebody froze the statistics of one layer
    modes = [module.training for module in model.modules()]
    for work in (predict, evaluate):
        work(model, setting.test)
        assert [module.training for module in model.modules()] == modes
    assert {True, False} == set(modes)


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
    store = open_store(str(tmp_path / "more"))
    deliver(open_source(str(tmp_path / "more.npz")), first, make_key(), store, layer_dtype=None)
    more = MorphedDataset(tmp_path / "more")
    assert predict(trained[0], more).column_names == ["row_id", "prediction", "probability"]
    named = predict(trained[0], more, class_names=("rows", "columns"))  # two outputs have no names
    names = {0: "rows", 1: "columns", 2: None, 3: None}
    answers = named["prediction"].to_pylist()
    assert set(answers) == set(names)
    assert named["class_name"].to_pylist() == [names[answer] for answer in answers]
    assert named.num_rows == 200
    for work in (evaluate, lambda *given: train(*given, epochs=1)):
        with pytest.raises(ParameterError, match="the data has no labels"):
            work(trained[0], more)
