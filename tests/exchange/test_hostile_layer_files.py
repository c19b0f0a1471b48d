"""Layer files whose digest is right and whose content makes no sense."""

import json

import numpy as np
import pytest

import mole
from checked_files import save_unaltered
from mole.errors import LayerFileError
from mole.storage.checked import load_checked, save_checked


@pytest.mark.parametrize(
    "changes",
    [
        {"stride": None},
        {"stride": "[1]"},
        {"stride": "x"},
        {"stride": "[[]]"},
        {"padding": "[[1]]"},
        {"groups": '"a"'},
        {"input_shape": "[3, 0, 7]"},
        {"mean": "[0.1]"},
        {"std": None},
        {"version": "one"},
        {"version": "2.0"},
        {"version": " 1"},
        {"version": "0"},
        {"version": None},
        {"stride": "[Infinity, 1]"},
        {"stride": "[1.9, 1]"},
        {"groups": "Infinity"},
        {"mean": "[1" + "0" * 400 + ", 1, 1]"},
    ],
)
def test_a_checked_header_that_makes_no_sense_is_refused(layer, tmp_path, changes):
    path = tmp_path / "l.safetensors"
    mole.save(layer, path)
    tensors, metadata = load_checked(path)
    metadata = {name: text for name, text in {**metadata, **changes}.items() if text is not None}
    save_checked(path, tensors, metadata)
    with pytest.raises(LayerFileError, match=r"l\.safetensors"):
        mole.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"input_shape": "[-3, -6, 7]"},
        {"kappa": "-5"},
        {"kappa": "1.0"},
        {"layout": '"stars"'},
        {"key_fingerprint": '"\\u001b[2Jhello"'},
        {"key_fingerprint": "7"},
    ],
)
def test_a_checked_augmented_layer_that_makes_no_sense_is_refused(augmented, tmp_path, changes):
    path = tmp_path / "a.safetensors"
    mole.save(augmented, path)
    tensors, metadata = load_checked(path)
    save_checked(path, tensors, {**metadata, **changes})
    with pytest.raises(LayerFileError, match=r"a\.safetensors"):
        mole.load(path)


@pytest.mark.parametrize("matrix", [np.int8, np.nan])
def test_numbers_that_are_none_are_refused(augmented, tmp_path, matrix):
    path = tmp_path / "a.safetensors"
    mole.save(augmented, path)
    tensors, metadata = load_checked(path)
    weight = tensors["weight"]
    tensors["weight"] = weight.astype(np.int8) if matrix is np.int8 else weight * np.float32(matrix)
    save_checked(path, tensors, metadata)
    with pytest.raises(LayerFileError, match=r"NaN|format"):
        mole.load(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tensors: tensors.pop("mixing"), "other tensors than a weight, a mixing and a bias"),
        (lambda tensors: tensors.update(more=tensors["bias"]), "other tensors than"),
        (lambda tensors: tensors.update(mixing=tensors["mixing"][:, 1:]), "a basis of shape"),
        (lambda tensors: tensors.update(mixing=tensors["mixing"][1:]), r"mixes \(20, components, 4\)"),
        (lambda tensors: tensors.update(mixing=tensors["mixing"].ravel()), "mixes"),
        (lambda tensors: tensors.update(mixing=tensors["mixing"].astype(np.float64)), "of one type"),
        (lambda tensors: tensors.update(mixing=tensors["mixing"] * np.float32(np.nan)), "NaN"),
        (lambda tensors: tensors.update(mixing=tensors["mixing"].astype(np.int8)), "numbers are int8"),
        (lambda tensors: tensors.update(weight=tensors["weight"][1:]), "a basis of shape"),
        (lambda tensors: tensors.update(mixing=tensors["mixing"][:, :0], weight=tensors["weight"][:, :0]),
         "no components"),
    ],
)  # fmt: skip
def test_factors_that_do_not_fit_are_refused(factored, tmp_path, change, reason):
    path = tmp_path / "a.safetensors"
    mole.save(factored, path)
    tensors, metadata = load_checked(path)
    change(tensors)
    save_checked(path, tensors, metadata)
    with pytest.raises(LayerFileError, match=rf"a\.safetensors .*{reason}"):
        mole.load(path)


def test_factors_under_the_first_version_or_for_tiles_are_refused(factored, layer, tmp_path):
    path = tmp_path / "a.safetensors"
    mole.save(factored, path)
    tensors, metadata = load_checked(path)
    for wrong, reason in (
        ({"version": "1"}, "other tensors than a weight and a bias"),
        ({"version": "3"}, "knows 1 and 2: upgrade"),
        ({"layout": '"tiles"', "kappa": "42"}, "tiles does not come in factors"),
    ):
        save_checked(path, tensors, {**metadata, **wrong})
        with pytest.raises(LayerFileError, match=reason):
            mole.load(path)
    mole.save(layer, path)
    tensors, metadata = load_checked(path)
    save_checked(path, {**tensors, "mixing": tensors["weight"]}, {**metadata, "version": "2"})
    with pytest.raises(LayerFileError, match=r"version '2' and this program knows 1: upgrade"):
        mole.load(path)  # a first layer has no factors


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", [3]), ("kernel", [3, 0]), ("kernel", "33"), ("stride", [1]), ("stride", [1.5, 1]),
        ("padding", [[1, 1]]), ("padding", [1, 1]), ("dilation", None), ("groups", "1"),
        ("kernel", [3] * 9),
    ],
)  # fmt: skip
def test_a_geometry_that_cannot_be_is_refused(augmented, tmp_path, name, value):
    path = tmp_path / "a.safetensors"
    mole.save(augmented, path)
    tensors, metadata = load_checked(path)
    assert mole.load(path).geometry == augmented.geometry
    save_checked(path, tensors, {**metadata, name: json.dumps(value)})
    with pytest.raises(LayerFileError, match=r"does not follow the format|does not fit"):
        mole.load(path)


@pytest.mark.parametrize("name", ["weight", "bias"])
@pytest.mark.parametrize("kind", ["first", "augmented"])
def test_a_number_in_the_place_of_a_tensor(layer, augmented, tmp_path, name, kind):
    path = tmp_path / "layer.safetensors"
    mole.save(layer if kind == "first" else augmented, path)
    tensors, metadata = load_checked(path)
    save_unaltered(path, {**tensors, name: np.array(1, np.float32)}, metadata)
    with pytest.raises(LayerFileError, match="a single number where a weight or a bias should be"):
        mole.load(path)
