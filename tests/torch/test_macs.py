"""Counted multiplications against known networks, formulas, and a count of the layers by hand."""

from pathlib import Path

import pytest
import torch
import transformers
from torch import nn

import mole
from mole.analysis import PRESETS, LayerSizes
from mole.analysis.overhead import (
    augmented_layer_macs,
    developer_extra_macs,
    first_layer_macs,
    share_of_training_step,
)
from mole.analysis.presets import RESNET152_MACS, VGG16_MACS
from mole.torch.macs import count_macs, count_training_macs
from mole.torch.networks import build_network, small_vgg, vgg16
from networks import NETWORKS, vit

DOCUMENT = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text()


def by_hand(model: nn.Module, shape: tuple[int, ...]) -> int:
    """A second way of counting: hooks on layers, with real numbers going through. Knows no attention."""
    total = 0

    def add(layer: nn.Module, _: object, output: torch.Tensor) -> None:
        nonlocal total
        weights = layer.weight[0].numel()
        total += output.numel() * weights

    hooks = [
        module.register_forward_hook(add)
        for module in model.modules()
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear)
    ]
    with torch.no_grad():
        model.eval()(torch.zeros(1, *shape))
    for hook in hooks:
        hook.remove()
    return total


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "vit"])
def test_the_count_is_that_of_the_layers(name):
    make, shape = NETWORKS[name]
    model = make()
    assert count_macs(model, shape) == by_hand(model, shape) > 0


def test_attention_counts_though_no_layer_stands_for_it():
    model, shape = vit(), (3, 32, 32)
    tokens, width, blocks = 17, 32, 2
    assert count_macs(model, shape) == by_hand(model, shape) + blocks * 2 * tokens**2 * width


def test_attention_of_pytorchs_own_layers_counts():
    model = nn.Sequential(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True))
    expected = 4 * 5 * 16**2 + 2 * 5 * 16 * 32 + 2 * 5**2 * 16
    assert count_macs(model, (5, 16)) == expected


def test_vgg_16_at_cifar_size():
    assert count_macs(vgg16((3, 32, 32), 10), (3, 32, 32)) == VGG16_MACS
    assert abs(VGG16_MACS - 313e6) < 1e6
    assert PRESETS["cifar-vgg16"].setting.network_macs == VGG16_MACS


def test_resnet_152_at_imagenet_size():
    config = transformers.ResNetConfig(depths=[3, 8, 36, 3], num_labels=1000)
    with torch.device("meta"):
        model = transformers.ResNetForImageClassification(config)
    assert count_macs(model, (3, 224, 224)) == RESNET152_MACS
    assert abs(RESNET152_MACS - 11.5e9) < 0.05e9
    assert PRESETS["imagenet-resnet152"].setting.network_macs == RESNET152_MACS


def test_vit_base_at_imagenet_size():
    with torch.device("meta"):
        model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000))
    assert count_macs(model, (3, 224, 224)) == pytest.approx(17.56e9, rel=0.001)


@pytest.mark.parametrize("form", ["dense", None])
def test_an_attached_layer_costs_what_equation_17_says_or_less_in_factors(form):
    model, shape = small_vgg((1, 28, 28), 10), (1, 28, 28)
    plain = count_macs(model, shape)
    layer = mole.torch.export_first_layer(model, shape)
    sizes = LayerSizes.of(layer)
    mole.torch.attach(model, mole.augment(layer, mole.MorphKey.generate(shape), form=form))
    extra = developer_extra_macs(
        input_elements=sizes.input_elements, output_elements=sizes.output_elements,
        kernel_elements=sizes.kernel_elements,
    )  # fmt: skip
    fewer = sizes.stored_numbers - sizes.output_elements * sizes.kernel_elements
    assert count_macs(model, shape) - plain == (extra if form == "dense" else fewer) > 0
    assert fewer < extra


def test_a_training_step_is_about_three_forward_passes():
    model, shape = vgg16((3, 32, 32), 10), (3, 32, 32)
    first = first_layer_macs(output_elements=65536, kernel_elements=27)
    assert count_training_macs(model, shape) == 3 * count_macs(model, shape) - first


def test_the_share_of_training_is_what_autograd_does():
    """VGG-16 with a frozen first layer of the augmented layer's size; nothing of it is kept in memory."""
    shape = (3, 32, 32)
    plain, morphed = vgg16(shape, 10), vgg16(shape, 10)
    product = nn.Linear(3072, 65536, bias=False, device="meta").requires_grad_(False)
    morphed[0] = nn.Sequential(nn.Flatten(), product, nn.Unflatten(1, (64, 32, 32)))
    assert augmented_layer_macs(input_elements=3072, output_elements=65536) == product.weight.numel()
    extra = developer_extra_macs(input_elements=3072, output_elements=65536, kernel_elements=27)
    by_rule = share_of_training_step(extra_macs=extra, network_macs=VGG16_MACS)
    counted = count_training_macs(morphed, shape) / count_training_macs(plain, shape) - 1
    assert counted == pytest.approx(by_rule, rel=0.02)
    assert f"through PyTorch's autograd it is {100 * counted:.1f} %" in DOCUMENT
    product.requires_grad_(True)
    assert count_training_macs(morphed, shape) / count_training_macs(plain, shape) - 1 > 1.9 * by_rule


def test_counting_leaves_the_model_as_it_was():
    model = build_network("small_resnet", (3, 32, 32), 10).train()
    model[1].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    count_training_macs(model, (3, 32, 32))
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Linear(4, 2)), (5,)),
        (nn.Sequential(nn.Conv2d(3, 4, 3)), (1, 8, 8)),
        (nn.Sequential(nn.LazyLinear(2)), (4,)),
    ],
    ids=["elements", "channels", "lazy"],
)
def test_a_model_that_does_not_run_is_one_sentence(model, shape):
    with pytest.raises(mole.MoleError, match="Sequential cannot be counted on a sample") as caught:
        count_macs(model, shape)
    assert len(str(caught.value).splitlines()) == 1


def test_a_model_that_learns_nothing_has_no_training_step():
    with pytest.raises(mole.MoleError, match="nothing in it learns"):
        count_training_macs(nn.Sequential(nn.Flatten(), nn.Linear(4, 2).requires_grad_(False)), (4,))
