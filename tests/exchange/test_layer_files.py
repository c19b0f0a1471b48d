"""First and augmented layers as files."""

import os
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from safetensors import safe_open
from safetensors.numpy import save_file

import mole
from light_passphrases import save_lightly
from mole.errors import LayerFileError
from mole.exchange.layer_files import load_augmented_layer, load_first_layer
from mole.storage.checked import load_checked, save_checked
from strategies import fewer_examples, layer_cases


def assert_same(one, other):
    assert type(one) is type(other)
    for name in (field.name for field in fields(one)):
        value = getattr(one, name)
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(other, name))
            assert value.dtype == getattr(other, name).dtype
        else:
            assert value == getattr(other, name)


@fewer_examples(0.25)
@given(case=layer_cases())
def test_every_first_layer_comes_back(case, tmp_path_factory):
    path = tmp_path_factory.mktemp("layer") / "first-layer.safetensors"
    mole.save(case.layer, path)
    assert_same(mole.load(path), case.layer)


@pytest.mark.parametrize("form", ["dense", "factored"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_an_augmented_layer_comes_back(layer, tmp_path, dtype, form):
    key = mole.MorphKey.generate((3, 6, 7), kappa=2, insecure_seed=bytes(32))
    augmented = mole.augment(layer, key, dtype=dtype, form=form)
    mole.save(augmented, tmp_path / "a.safetensors")
    loaded = mole.load(tmp_path / "a.safetensors")
    assert_same(loaded, augmented)
    assert (loaded.form, loaded.key_fingerprint) == (form, key.fingerprint)
    assert loaded.normalisation == layer.normalisation


def test_any_safetensors_reader_opens_it_and_finds_nothing_secret(augmented, tmp_path):
    mole.save(augmented, tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", framework="np") as file:
        assert set(file.keys()) == {"weight", "bias"}
        assert set(file.metadata()) == {
            "format", "version", "input_shape", "output_shape", "kappa", "layout", "key_fingerprint",
            "mean", "std", "sha256", "kernel", "stride", "padding", "dilation", "groups",
        }  # fmt: skip


def test_saving_again_replaces_and_leaves_nothing_beside(layer, tmp_path):
    for _ in range(2):
        mole.save(layer, tmp_path / "l.safetensors")
    assert [file.name for file in tmp_path.iterdir()] == ["l.safetensors"]


def test_a_failed_save_keeps_the_old_file(layer, tmp_path, monkeypatch):
    path = tmp_path / "l.safetensors"
    mole.save(layer, path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LayerFileError, match="No space left on device"):
        mole.save(layer, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["l.safetensors"]


def test_places_that_cannot_be_used_are_named(layer, tmp_path):
    with pytest.raises(LayerFileError, match=r"nowhere/l\.safetensors cannot be written"):
        mole.save(layer, tmp_path / "nowhere" / "l.safetensors")
    save_lightly(mole.MorphKey.generate((1, 4, 4)), tmp_path / "provider.key", "passphrase")
    with pytest.raises(LayerFileError, match=r"provider\.key is a key"):
        mole.load(tmp_path / "provider.key")
    with pytest.raises(LayerFileError, match="cannot be read: it does not exist"):
        mole.load(tmp_path / "missing.safetensors")
    with pytest.raises(LayerFileError, match="cannot be read: it is a folder"):
        mole.load(tmp_path)


def test_the_wrong_kind_of_layer_is_named(layer, augmented, tmp_path):
    mole.save(layer, tmp_path / "l")
    mole.save(augmented, tmp_path / "a")
    with pytest.raises(LayerFileError, match="is an augmented layer, and a first layer is needed"):
        load_first_layer(tmp_path / "a")
    with pytest.raises(LayerFileError, match="is a first layer, and an augmented layer is needed"):
        load_augmented_layer(tmp_path / "l")


def test_foreign_and_newer_files_are_named(layer, tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"weight": layer.weight}, path)
    with pytest.raises(LayerFileError, match="not a Morphed Learning layer: give the file"):
        mole.load(path)
    save_checked(path, {"weight": layer.weight}, {"format": "mole-first-layer", "version": "2"})
    with pytest.raises(LayerFileError, match=r"format version '2' .* upgrade"):
        mole.load(path)
    path.write_bytes(b"PK\x03\x04 this is a zip file")
    with pytest.raises(LayerFileError, match="not a layer file"):
        mole.load(path)
    path.write_bytes(b"")
    with pytest.raises(LayerFileError, match="not a layer file"):
        mole.load(path)


def test_only_a_layer_in_factors_has_the_second_version(augmented, factored, tmp_path):
    """So that a reader before 0.7 asks for an upgrade, and reads everything else."""
    for layer, version, names in (
        (augmented, "1", {"weight", "bias"}),
        (factored, "2", {"weight", "mixing", "bias"}),
    ):
        mole.save(layer, tmp_path / "a.safetensors")
        tensors, metadata = load_checked(tmp_path / "a.safetensors")
        assert (metadata["version"], set(tensors)) == (version, names)


def test_what_is_no_layer_is_not_saved(tmp_path):
    with pytest.raises(LayerFileError, match=r"a MorphKey is not a layer; .* key\.save"):
        mole.save(mole.MorphKey.generate((1, 4, 4)), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_layer_file_is_for_its_owner_alone(layer, tmp_path):
    previous = os.umask(0)
    try:
        mole.save(layer, tmp_path / "l.safetensors")
    finally:
        os.umask(previous)
    assert (tmp_path / "l.safetensors").stat().st_mode & 0o777 == 0o600


def test_a_float_type_that_no_file_holds_is_refused(layer, tmp_path):
    wide = mole.FirstLayer.conv(layer.weight.astype(np.longdouble), None, input_shape=(3, 6, 7))
    with pytest.raises(LayerFileError, match="float32 or float16"):
        mole.save(wide, tmp_path / "l.safetensors")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_a_layer_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "layer.safetensors")
    with pytest.raises(LayerFileError, match=r"layer\.safetensors cannot be read: it is a pipe"):
        mole.load(tmp_path / "layer.safetensors")
