"""Augmented layers in two factors in networks and in their files."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import mole
from mole.errors import FileError
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.storage.checked import load_checked, save_checked
from mole.torch import attach, export_first_layer, load_checkpoint, save_checkpoint
from mole.torch.module import augmented_part
from mole.torch.starting import load_trained

SHAPE = (1, 8, 8)
LAYERS = {
    "colour": (lambda: nn.Conv2d(3, 40, 3, padding=1), (3, 8, 8), 3),
    "grey": (lambda: nn.Conv2d(1, 16, 3, stride=2, bias=False), (1, 9, 12), 1),
    "groups": (lambda: nn.Conv2d(2, 24, 3, padding=2, dilation=2, groups=2), (2, 8, 6), 2),
    "sound": (lambda: nn.Conv1d(2, 24, 5, stride=2), (2, 48), 4),
    "a volume": (lambda: nn.Conv3d(1, 32, 2), (1, 4, 6, 5), 1),
}


def small(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 5))


def layers(model: nn.Module, seed: int = 0) -> dict[str, mole.AugmentedLayer]:
    """The model's augmented layer in both forms."""
    first, key = (
        export_first_layer(model, SHAPE),
        mole.MorphKey.generate(SHAPE, insecure_seed=bytes([seed] * 32)),
    )
    return {form: mole.augment(first, key, form=form) for form in ("dense", "factored")}


@pytest.mark.parametrize("name", LAYERS)
def test_features_are_those_of_torchs_own_layer(rng, name):
    make, shape, kappa = LAYERS[name]
    torch.manual_seed(0)
    layer = make()
    model, key = nn.Sequential(layer), mole.MorphKey.generate(shape, kappa=kappa)
    module = attach(model, mole.augment(export_first_layer(model, shape), key))
    assert module.mixing is not None
    images = rng.normal(size=(3, *shape)).astype(np.float32)
    with torch.no_grad():
        expected = layer(torch.from_numpy(images))[:, key.channel_order(layer.out_channels)]
        found = model(torch.from_numpy(mole.morph(images, key)))
    assert found.is_contiguous()
    assert (found - expected).norm() < 1e-5 * expected.norm()


def test_the_layer_comes_out_as_it_went_in():
    model = small()
    layer = layers(model)["factored"]
    again = attach(model, layer).layer()
    assert again.form == "factored"
    assert np.array_equal(again.weight, layer.weight)
    assert np.array_equal(again.mixing, layer.mixing)


def test_a_checkpoint_holds_both_factors(tmp_path):
    model, path = small(), tmp_path / "model.safetensors"
    attach(model, layers(model)["factored"], in_state_dict=False)
    save_checkpoint(path, model, CheckpointFacts("mine", SHAPE, 5))
    tensors, metadata = load_checked(path)
    assert metadata["version"] == "2"  # so that older readers ask for an upgrade
    samples = torch.randn(2, *SHAPE)
    assert torch.equal(load_checkpoint(path, small(1)).model(samples), model(samples))
    wrong = {**tensors, "0.mixing": tensors["0.mixing"][:, 1:]}
    save_checked(path, wrong, metadata)
    with pytest.raises(
        FileError, match=r"model\.safetensors does not hold a usable network: .* in factors"
    ):
        load_checkpoint(path, small(1))
    dense = small()
    attach(dense, layers(dense)["dense"])
    save_checkpoint(path, dense, CheckpointFacts("mine", SHAPE, 5))
    assert load_checked(path)[1]["version"] == "1"
    assert "form" not in json.loads(load_checked(path)[1]["augmented"])


@pytest.mark.parametrize(("one", "other"), [("dense", "factored"), ("factored", "dense")])
def test_weights_fit_whichever_form_is_attached(tmp_path, one, other):
    """What was trained over one form goes on over the other: the key is the same."""
    first, second = small(1), small(2)
    attach(first, layers(small())[one], in_state_dict=False)
    attach(second, layers(small())[other], in_state_dict=False)
    samples = torch.randn(2, *SHAPE)
    second.load_state_dict(first.state_dict())
    assert torch.allclose(second(samples), first(samples), atol=1e-5)
    save_checkpoint(tmp_path / "m.safetensors", first, CheckpointFacts("mine", SHAPE, 5))
    third = small(3)
    attach(third, layers(small())[other])
    load_trained(third, tmp_path / "m.safetensors")
    assert torch.allclose(third(samples), first(samples), atol=1e-5)
    assert (augmented_part(third).module.mixing is None) == (other == "dense")
    stranger = small(4)
    attach(stranger, layers(small(), seed=1)[other], in_state_dict=False)
    with pytest.raises(RuntimeError, match="is of another key"):
        stranger.load_state_dict(first.state_dict())


def test_a_whole_state_dict_of_another_form_is_refused():
    first, second = small(), small()
    for model, form in ((first, "dense"), (second, "factored")):
        attach(model, layers(model)[form])
    for model, other in ((first, second), (second, first)):
        with pytest.raises(RuntimeError, match=r"0\.(mixing|weight)"):
            model.load_state_dict(other.state_dict())
