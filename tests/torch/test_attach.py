"""An augmented layer in real networks: same features, frozen, saved and loaded."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import mole
from mole.errors import ParameterError, UnsupportedLayerError
from mole.torch import AugmentedModule, attach, export_first_layer, find_first_layer
from networks import NETWORKS, logits, mlp, vit

SEED = bytes(range(32))


class Attached:
    """A network before and after, with the key and a batch of both kinds."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        make, self.input_shape = NETWORKS[name]
        self.model = make().train()
        self.original = copy.deepcopy(self.model)
        self.layer = export_first_layer(self.model, self.input_shape)
        self.place = find_first_layer(self.model, self.input_shape).name
        self.key = mole.MorphKey.generate(self.input_shape, kappa=4, insecure_seed=SEED)
        self.augmented = mole.augment(self.layer, self.key)
        self.module = attach(self.model, self.augmented)
        images = np.random.default_rng(0).normal(size=(4, *self.input_shape)).astype(np.float32)
        self.plain = torch.from_numpy(images)
        self.morphed = torch.from_numpy(mole.morph(images, self.key))


@pytest.fixture(scope="module", params=NETWORKS)
def attached(request) -> Attached:
    return Attached(request.param)


def features_at(model: nn.Module, place: str, batch: torch.Tensor) -> torch.Tensor:
    """What a layer gives while the whole model runs."""
    seen = []
    model = copy.deepcopy(model).eval()
    model.get_submodule(place).register_forward_hook(lambda _m, _i, out: seen.append(out.clone()))
    with torch.no_grad():
        model(batch)
    return seen[0]


def test_features_are_the_originals_up_to_the_shuffle(attached):
    ours = features_at(attached.model, attached.place, attached.morphed)
    truth = features_at(attached.original, attached.place, attached.plain)
    order = torch.from_numpy(attached.key.channel_order(attached.layer.channels))
    assert ours.shape == truth.shape
    assert (ours - truth[:, order]).norm() <= 1e-5 * truth.norm()


def test_on_plain_data_the_features_are_not_the_originals(attached):
    wrong = features_at(attached.model, attached.place, attached.plain)
    truth = features_at(attached.original, attached.place, attached.plain)
    order = torch.from_numpy(attached.key.channel_order(attached.layer.channels))
    assert (wrong - truth[:, order]).norm() > 0.1 * truth.norm()


def test_nothing_else_in_the_model_changed(attached):
    ours, theirs = attached.model.state_dict(), attached.original.state_dict()
    assert [name for name in ours if name != f"{attached.place}.key_id"] == list(theirs)
    for name in theirs:
        if not name.startswith(attached.place):
            assert torch.equal(ours[name], theirs[name])
    assert all(module.training for module in attached.model.modules())


def trained_a_step(attached: Attached) -> nn.Module:
    """A copy of the model after one step on morphed data, large for every parameter with a gradient."""
    model = copy.deepcopy(attached.model).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-30)
    loss = nn.functional.cross_entropy(logits(model(attached.morphed)), torch.tensor([0, 1, 2, 3]))
    loss.backward()
    optimizer.step()
    return model


def test_a_training_step_changes_every_parameter_but_the_augmented_layers(attached):
    before = attached.model.state_dict()
    model = trained_a_step(attached)
    after, parameters = model.state_dict(), dict(model.named_parameters())
    frozen = [name for name in after if name.startswith(f"{attached.place}.")]
    assert parameters
    assert not set(frozen) & set(parameters)
    for name, parameter in parameters.items():
        assert parameter.grad is not None, f"{name} has no gradient"
        if parameter.grad.abs().max() > 0:  # a bias in front of a normalisation may have none
            assert not torch.equal(parameter, before[name]), f"{name} did not change"
    changed = [name for name in parameters if not torch.equal(after[name], before[name])]
    assert len(changed) >= 0.9 * len(parameters)
    assert all(torch.equal(after[name], before[name]) for name in frozen)


def test_a_saved_model_gives_the_same_output(attached, tmp_path):
    trained = trained_a_step(attached).eval()
    torch.save(trained.state_dict(), tmp_path / "checkpoint.pt")

    fresh = copy.deepcopy(attached.original)
    another = mole.MorphKey.generate(attached.input_shape, kappa=4)  # a large core takes seconds
    attach(fresh, mole.augment(attached.layer, another))  # loading must replace this one
    with torch.no_grad():
        expected = logits(trained(attached.morphed))
        assert not torch.allclose(logits(fresh.eval()(attached.morphed)), expected, atol=1e-4)
        fresh.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True))
        assert torch.allclose(logits(fresh.eval()(attached.morphed)), expected, atol=1e-6)
    assert fresh.get_submodule(attached.place).key_fingerprint == attached.key.fingerprint


def test_two_models_and_the_layer_share_no_memory():
    attached = Attached("mlp")
    before = attached.augmented.matrix.copy()
    other = copy.deepcopy(attached.original)
    attach(other, attached.augmented)
    attached.module.weight.zero_()
    assert np.array_equal(attached.augmented.matrix, before)
    assert other[1].weight.abs().sum() > 0


def test_the_model_prints_its_new_layer():
    assert "(784 -> " not in str(mlp())
    attached = Attached("mlp")
    assert f"(1, 28, 28) -> (32,), key {attached.key.fingerprint}" in str(attached.model)


def test_attaching_again_replaces_the_augmented_layer():
    attached = Attached("vit")
    other = mole.MorphKey.generate(attached.input_shape, kappa=4)
    module = attach(attached.model, mole.augment(attached.layer, other))
    assert module.key_fingerprint == other.fingerprint
    assert sum(isinstance(m, AugmentedModule) for m in attached.model.modules()) == 1


def test_a_layer_that_does_not_fit_is_refused_with_all_reasons_and_nothing_changes():
    model = vit()
    before = copy.deepcopy(model.state_dict())
    layer = mole.FirstLayer.conv(np.ones((5, 3, 8, 8)), None, input_shape=(3, 32, 32), stride=8)
    augmented = mole.augment(layer, mole.MorphKey.generate((3, 32, 32), kappa=48))
    with pytest.raises(UnsupportedLayerError) as caught:
        attach(model, augmented)
    assert len(caught.value.reasons) == 2
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_an_augmented_layer_cannot_be_exported():
    attached = Attached("mlp")
    with pytest.raises(UnsupportedLayerError, match="already an augmented layer"):
        export_first_layer(attached.model, attached.input_shape)
    with pytest.raises(ParameterError, match="FirstLayer cannot be attached"):
        attach(attached.original, attached.layer)


def conv_layer(kernel: int, **numbers) -> mole.FirstLayer:
    weight = np.random.default_rng(0).normal(size=(4, 3, kernel, kernel)).astype(np.float32)
    return mole.FirstLayer.conv(weight, np.ones(4, np.float32), input_shape=(3, 8, 8), **numbers)


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (conv_layer(5, padding=2), r"kernel \(3, 3\) and this one was made from a layer with \(5, 5\)"),
        (conv_layer(3, padding=2, dilation=2), r"dilation \(1, 1\)"),
        (conv_layer(3, padding=((0, 2), (1, 1))), r"padding \(\(1, 1\), \(1, 1\)\)"),
    ],
)
def test_a_layer_of_the_same_size_and_another_geometry_is_refused(layer, words, tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1))
    own = model[0]
    augmented = mole.augment(layer, mole.MorphKey.generate((3, 8, 8)))
    mole.save(augmented, tmp_path / "layer.safetensors")
    for one in (augmented, mole.load(tmp_path / "layer.safetensors")):
        with pytest.raises(UnsupportedLayerError, match=words):
            attach(model, one)
        assert model[0] is own
    attach(model, mole.augment(conv_layer(3, padding=1), mole.MorphKey.generate((3, 8, 8))))
    with pytest.raises(UnsupportedLayerError, match=words):
        attach(model, augmented)


def test_another_stride_is_refused_and_what_changes_no_feature_is_not():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1))
    key = mole.MorphKey.generate((3, 8, 8))
    with pytest.raises(UnsupportedLayerError, match=r"stride \(2, 2\).*layer with \(1, 1\)"):
        attach(model, mole.augment(conv_layer(5), key))
    attach(
        model, mole.augment(conv_layer(3, stride=2, padding=((1, 0), (1, 0))), key)
    )  # no window is there


def test_a_file_that_does_not_say_its_geometry_fits_by_its_size():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1))
    augmented = mole.augment(conv_layer(3, padding=1), mole.MorphKey.generate((3, 8, 8)))
    assert attach(model, replace(augmented, geometry=None)).geometry is None


@pytest.fixture
def one_process():
    distributed = pytest.importorskip("torch.distributed")
    if not (distributed.is_available() and distributed.is_gloo_available()):
        pytest.skip("needs Gloo")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def test_a_layer_is_attached_before_a_model_is_distributed(one_process):
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Flatten(), nn.Linear(256, 2))
    wrapped = nn.parallel.DistributedDataParallel(model)
    key = mole.MorphKey.generate((3, 8, 8))
    layer = export_first_layer(wrapped, (3, 8, 8))
    for one in (wrapped, nn.Sequential(wrapped)):
        with pytest.raises(
            UnsupportedLayerError, match="attach to the model itself, and wrap it afterwards"
        ):
            attach(one, mole.augment(layer, key))
    assert isinstance(model[0], nn.Conv2d)
    attach(model, mole.augment(layer, key))
    again = nn.parallel.DistributedDataParallel(model)
    again(torch.ones(2, 3, 8, 8)).sum().backward()
    assert model[2].weight.grad.abs().sum() > 0
