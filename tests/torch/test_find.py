"""The first layer is found by running the model; what cannot be replaced is refused with every reason."""

import copy
import re
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

import mole
from chosen_layout import about_rows
from mole.errors import UnsupportedLayerError
from mole.torch import attach, export_first_layer, find_first_layer
from processors import needs_16_bits
from small_models import Net, agree, conv, reasons


def test_order_of_attributes_does_not_matter():
    model = Net(lambda net, x: net.a(net.b(x)), a=conv(4, 5), b=conv())
    assert find_first_layer(model, (3, 8, 8)).name == "b"


def test_modes_randomness_and_hooks_stay_as_they_were():
    model = nn.Sequential(conv(), nn.Dropout(), nn.BatchNorm2d(4)).train()
    model[1].eval()
    state = torch.get_rng_state()
    find_first_layer(model, (3, 8, 8))
    assert torch.equal(torch.get_rng_state(), state)
    assert [module.training for module in model] == [True, False, True]
    assert torch.equal(model[2].running_mean, torch.zeros(4))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize(
    "prepare",
    [
        lambda x: x,
        lambda x: x.contiguous(memory_format=torch.channels_last),
        lambda x: x.to(torch.float64).to(torch.float32),
        lambda x: x.clone().detach(),
        lambda x: x.unsqueeze(0).squeeze(0),
        lambda x: F.pad(x, (1, 0, 0, 2)),
        lambda x: F.pad(x, (1, 1)),
        lambda x: F.pad(x, ()),
    ],
)
def test_what_keeps_the_input_is_seen_through(prepare, rng):
    """Shape, precision, memory and zero padding do not hide the input from the first layer."""
    model = Net(lambda net, x: net.stem(prepare(x)), stem=conv(stride=2, padding=1))
    layer = export_first_layer(model, (3, 8, 8))
    key = mole.MorphKey.generate((3, 8, 8))
    images = rng.normal(size=(2, 3, 8, 8)).astype(np.float32)
    with torch.no_grad():
        expected = model(torch.from_numpy(images))[:, key.channel_order(4)]
        attach(model, mole.augment(layer, key))
        features = model(torch.from_numpy(mole.morph(images, key)))
    assert torch.allclose(features, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Net(lambda n, x: n.a(x) + n.b(x), a=conv(), b=conv()), "several layers: a, b"),
        (Net(lambda n, x: n.a(x).mean() + x.mean(), a=conv()), "the input goes through mean"),
        (Net(lambda n, x: n.a((x - 0.5) / 0.5), a=conv()), "goes through sub in"),
        (Net(lambda n, x: n.a(x.mul_(2)), a=conv()), "goes through mul_"),
        (Net(lambda n, x: n.a(x.permute(0, 1, 3, 2)), a=conv()), "goes through permute"),
        (Net(lambda n, x: n.a(x[..., 1:]), a=conv()), "goes through slice"),
        (Net(lambda n, x: n.a(F.pad(x, (1, 1), value=1.0)), a=conv()), "goes through constant_pad_nd"),
        (Net(lambda n, x: n.a(F.pad(x, (-1, 1))), a=conv()), "goes through constant_pad_nd"),
        (Net(lambda n, x: n.a(n.a(x)), a=conv(3, 3)), "a is also used on something other"),
        (nn.Sequential(nn.BatchNorm2d(3), conv()), r"native_batch_norm in 0 \(BatchNorm2d\)"),
        (nn.Sequential(nn.ConvTranspose2d(3, 4, 3)), r"convolution in 0 \(ConvTranspose2d\)"),
        (nn.Sequential(conv(padding=1, padding_mode="circular")), "'circular', and only 'zeros'"),
        (conv(), "bare layer"),
        (nn.Sequential(nn.Linear(8, 4)), "takes 8 elements and a sample .* has 192"),
        (Net(lambda n, x: n.a(x.reshape(-1, 3, 4, 16)), a=conv()), "something other than its weights"),
        (nn.Sequential(nn.Conv2d(4, 4, 3)), "to have 4 channels"),
        (Net(lambda n, x: n.a(x.flip(-1) if n.training else x), a=conv()), "goes through flip"),
        (nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(192, 4)), r"in 1 \(Dropout\)"),
        (Net(lambda n, x: n.a(x.long().float()), a=conv()), "goes through _to_copy"),
        (
            Net(lambda n, x: F.linear(n.a(x.flatten(1)), n.a.weight.t()), a=nn.Linear(192, 192)),
            "weight of a is also used elsewhere",
        ),
        (Net(lambda n, x: n.a(F.pad(x, (0, 0, 0, 0, 1, 0))), a=conv(4)), "pads its input along other axes"),
        (Net(lambda n, x: n.a(F.pad(x, (1, 1)).flatten(1)), a=nn.Linear(240, 4)), "along other axes"),
    ],
)
def test_what_cannot_be_replaced_is_refused_with_its_reason(model, words):
    assert re.search(words, reasons(model))


def test_all_reasons_come_at_once():
    model = Net(lambda n, x: n.a(x) + n.b(x) + x.mean() + x.std(), a=conv(), b=conv())
    assert reasons(model).count("|") == 2


class Standardised(nn.Conv2d):
    """A convolution that works out its weight anew in every call."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return F.conv2d(batch, self.weight - self.weight.mean(), self.bias)


def old_form(norm, layer: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the old form is deprecated, and in use
        return norm(layer)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Standardised(3, 4, 3),
        lambda: parametrizations.weight_norm(conv()),
        lambda: parametrizations.spectral_norm(conv()),
        lambda: old_form(nn.utils.weight_norm, conv()),
        lambda: old_form(nn.utils.spectral_norm, conv()),
    ],
)
def test_a_weight_that_is_worked_out_in_every_call_is_taken_as_it_comes_out(make):
    torch.manual_seed(0)
    model = nn.Sequential(make(), nn.ReLU(inplace=True)).train()
    before = copy.deepcopy(model.state_dict())
    export_first_layer(model, (3, 8, 8))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert agree(model, (3, 8, 8))


def test_a_layer_that_does_more_than_its_product_is_refused():
    class Activated(nn.Conv2d):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return super().forward(batch).relu()

    class Attending(nn.Conv2d):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return F.conv2d(batch, self.weight * batch.mean().sigmoid(), self.bias)

    class Thinned(nn.Conv2d):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return F.conv2d(batch, F.dropout(self.weight, 0.2, self.training), self.bias)

    class Noisy(nn.Conv2d):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return super().forward(batch) + self.training

    assert "computes something other" in reasons(nn.Sequential(Activated(3, 4, 3)))
    assert "computes something other" in reasons(nn.Sequential(Attending(3, 4, 3)))
    assert re.search("random|other features while training", reasons(nn.Sequential(Thinned(3, 4, 3))))
    assert "other features while training" in reasons(nn.Sequential(Noisy(3, 4, 3)))


@pytest.mark.parametrize(
    ("prepare", "shape", "layer"),
    [
        (lambda x: F.pad(F.pad(x, (1, 0)), (0, 2, 1, 1)), (3, 8, 8), conv(stride=2)),
        pytest.param(
            lambda x: F.pad(x[:, None], (2, 1)), (30,), nn.Conv1d(1, 4, 5, stride=2), marks=about_rows
        ),
        pytest.param(
            lambda x: F.pad(x, (2, 1)).unsqueeze(1), (30,), nn.Conv1d(1, 4, 5, stride=2), marks=about_rows
        ),
        pytest.param(
            lambda x: F.pad(x, (1, 1)).unsqueeze(1), (3, 8, 8), nn.Conv3d(1, 4, 3), marks=about_rows
        ),
        pytest.param(lambda x: x[:][:, None], (6, 7), nn.Conv2d(1, 4, 3, padding=1), marks=about_rows),
    ],
)
def test_pads_in_a_row_and_an_added_axis_of_channels(prepare, shape, layer):
    model = Net(lambda net, x: net.stem(prepare(x)), stem=layer)
    assert export_first_layer(model, shape).input_shape == shape
    assert agree(model, shape)


def test_every_call_of_a_layer_is_looked_at():
    pooled = Net(lambda n, x: n.a(x).amax((2, 3)) + n.a(F.pad(x, (2, 2, 2, 2))).amax((2, 3)), a=conv())
    assert "no zeros around it in one call and with 2+2 and 2+2 zeros" in reasons(pooled)
    training = Net(lambda n, x: n.a(F.pad(x, (1, 1)) if n.training else x), a=conv())
    assert "with 1+1 zeros around it in another" in reasons(training)
    choice = Net(lambda n, x: n.b(x) if n.training else n.a(x), a=conv(), b=conv())
    assert "several layers: a, b" in reasons(choice)
    assert agree(Net(lambda n, x: n.a(x) + 2 * n.a(x), a=conv()), (3, 8, 8))


def test_autocast_and_the_default_device_change_nothing():
    model = nn.Sequential(conv())
    expected = export_first_layer(model, (3, 8, 8)).fingerprint
    with torch.autocast("cpu", torch.bfloat16):
        assert export_first_layer(model, (3, 8, 8)).fingerprint == expected
    with torch.device("meta"):
        assert export_first_layer(model, (3, 8, 8)).fingerprint == expected
        layer = mole.augment(export_first_layer(model, (3, 8, 8)), mole.MorphKey.generate((3, 8, 8)))
        assert attach(model, layer).weight.device.type == "cpu"


@needs_16_bits
def test_autocast_inside_a_model_is_allowed_its_rounding():
    def forward(net, x):
        with torch.autocast("cpu", torch.bfloat16):
            return net.a(x)

    assert export_first_layer(Net(forward, a=conv()), (3, 8, 8)).channels == 4


def test_a_model_without_values_is_refused_with_the_way_out():
    with pytest.raises(UnsupportedLayerError, match=r"'0.weight' is on the meta device.*load_state_dict"):
        export_first_layer(nn.Sequential(conv()).to("meta"), (3, 8, 8))


def test_attach_refuses_what_export_refuses():
    layer = export_first_layer(nn.Sequential(conv(padding=1)), (3, 8, 8))
    augmented = mole.augment(layer, mole.MorphKey.generate((3, 8, 8)))
    with pytest.raises(UnsupportedLayerError, match="'circular'"):
        attach(nn.Sequential(conv(padding=1, padding_mode="circular")), augmented)


def test_what_only_looks_at_the_shape_is_no_use_of_the_input():
    model = Net(lambda net, x: net.a(x) + torch.zeros_like(x).sum(), a=conv())
    assert find_first_layer(model, (3, 8, 8)).name == "a"


def test_models_are_found_out_under_any_setting():
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 4))
    with torch.inference_mode():
        assert find_first_layer(model, (3, 8, 8)).name == "1"
    with torch.device("meta"):
        assert find_first_layer(model, (3, 8, 8)).name == "1"


def test_a_layer_that_gives_no_tensor_is_refused():
    class Pair(nn.Conv2d):
        def forward(self, batch: torch.Tensor) -> tuple[torch.Tensor, int]:
            return super().forward(batch), 1

    model = Net(lambda net, x: net.a(x)[0], a=Pair(3, 4, 3))
    assert "something other than a tensor" in reasons(model)


def test_a_layer_under_two_names_is_replaced_under_both():
    stem = conv()
    model = Net(lambda net, x: net.body(x), stem=stem, body=nn.Sequential(stem, nn.ReLU()))
    key = mole.MorphKey.generate((3, 8, 8))
    module = attach(model, mole.augment(export_first_layer(model, (3, 8, 8)), key))
    assert model.stem is module
    assert model.body[0] is module


def test_a_layer_that_is_no_attribute_cannot_be_replaced():
    stem = conv()
    model = Net(lambda net, x: stem(x), shown=stem)
    augmented = mole.augment(export_first_layer(model, (3, 8, 8)), mole.MorphKey.generate((3, 8, 8)))
    with pytest.raises(UnsupportedLayerError):
        attach(model, augmented)
    assert model.shown is stem
