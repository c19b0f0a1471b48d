"""A checkpoint holds all that predicting needs, and no code."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import mole
from chosen_layout import about_rows
from glyphs import CLASSES, FACTS, SHAPE, make_key, network
from mole.errors import FileError, ParameterError
from mole.storage.checked import load_checked, save_checked
from mole.torch import (
    CheckpointFacts,
    attach,
    evaluate,
    export_first_layer,
    load_checkpoint,
    save_checkpoint,
)
from mole.torch.networks import build_network


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


@about_rows  # a Linear layer
def test_a_checkpoint_of_somebodys_own_network(setting, tmp_path):
    def own():
        return nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 4))

    model, path = own(), tmp_path / "own.safetensors"
    attach(model, mole.augment(export_first_layer(model, SHAPE), make_key()))
    save_checkpoint(path, model, CheckpointFacts("my:own", SHAPE, 4))
    samples = torch.randn(2, *SHAPE)
    assert torch.equal(load_checkpoint(path, own()).model(samples), model(samples))
    with pytest.raises(FileError, match=r"'my:own', which is not built in: give network=\.\.\."):
        load_checkpoint(path)

    def factory(facts):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(math.prod(facts.input_shape), 8), nn.ReLU(), nn.Linear(8, facts.classes)
        )

    assert torch.equal(load_checkpoint(path, factory).model(samples), model(samples))
    with pytest.raises(FileError, match=r"own\.safetensors does not hold a usable network"):
        load_checkpoint(path, network())


@pytest.mark.parametrize("key_id", [np.array(1 << 62), np.array(5, np.uint8), np.arange(16)])
def test_a_fingerprint_is_never_taken_for_a_length(trained, tmp_path, key_id):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trained[0], FACTS)
    state, metadata = load_checked(path)
    (name,) = (name for name in state if name.endswith(".key_id"))
    save_checked(path, {**state, name: key_id}, metadata)
    with pytest.raises(FileError, match=r"does not hold a usable network: its key_id is"):
        load_checkpoint(path)


def test_files_that_are_no_checkpoints(setting, trained, tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(FileError, match="cannot be read: it does not exist"):
        load_checkpoint(path)
    save_checkpoint(path, trained[0], FACTS)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="is damaged"):
        load_checkpoint(path)
    for other in (b"", b"hello", b"\x00" * 100):
        path.write_bytes(other)
        with pytest.raises(FileError, match="is not a checkpoint"):
            load_checkpoint(path)
    with pytest.raises(FileError, match="is not a checkpoint"):
        load_checkpoint(f"{setting.folder}/augmented-layer.safetensors")
    with pytest.raises(FileError, match=r"folder .* does not exist"):
        save_checkpoint(tmp_path / "nowhere" / "model.safetensors", trained[0], FACTS)
    save_checkpoint(path, trained[0], CheckpointFacts("small_resnet", SHAPE, 4))
    with pytest.raises(FileError, match="does not hold a usable network"):
        load_checkpoint(path)
    with pytest.raises(ParameterError, match=r"bfloat16, which a checkpoint cannot hold"):
        save_checkpoint(path, network().bfloat16(), FACTS)
