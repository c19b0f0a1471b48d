"""The module on its own: moving, casting, compiling, replicating."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

import mole
from mole.errors import MoleWarning, ShapeError
from mole.torch import AugmentedModule, attach, export_first_layer
from processors import needs_16_bits


@pytest.fixture(params=["rows", "factored", "tiles"])
def setting(rng, request):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 5))
    tile = 4 if request.param == "tiles" else None
    key = mole.MorphKey.generate((3, 8, 8), tile=tile, insecure_seed=bytes(32))
    form = "factored" if request.param == "factored" else None
    module = attach(model, mole.augment(export_first_layer(model, (3, 8, 8)), key, form=form))
    assert (module.mixing is not None) == (form is not None)
    images = rng.normal(size=(6, 3, 8, 8)).astype(np.float32)
    return model, module, torch.from_numpy(mole.morph(images, key))


def test_it_is_frozen_and_moves(setting):
    model, module, morphed = setting
    assert list(module.parameters()) == []
    own = {"mixing"} if module.mixing is not None else set()
    assert set(module.state_dict()) == {"weight", "bias", "key_id"} | own
    model.requires_grad_(True)
    assert not module.weight.requires_grad
    for dtype in (torch.float64, torch.float32):
        assert model.to(dtype)(morphed.to(dtype)).dtype == dtype
    assert model.to("meta")(morphed.to("meta")).device.type == "meta"


def test_gradients_reach_what_comes_before_it(setting):
    _, module, morphed = setting
    morphed.requires_grad_(True)
    module(morphed).sum().backward()
    assert morphed.grad is not None
    assert morphed.grad.abs().sum() > 0


def test_a_wrong_batch_is_named(setting):
    _, module, _ = setting
    for shape in ((2, 3, 8, 9), (2, 8, 8, 3), (2, 8, 3, 8), (2, 7)):
        with pytest.raises(ShapeError, match=r"expected \(batch, 3, 8, 8\)"):
            module(torch.zeros(shape))


def test_rows_and_empty_batches_are_taken_too(setting):
    _, module, morphed = setting
    assert torch.equal(module(morphed.flatten(1)), module(morphed))
    assert module(morphed[:0]).shape == (0, 8, 8, 8)


def test_torch_compile(setting):
    model, _, morphed = setting
    with torch.no_grad():
        expected = model(morphed)
        compiled = torch.compile(model, fullgraph=True)
        assert torch.allclose(compiled(morphed), expected, atol=1e-5)
        assert torch.allclose(compiled(morphed[:3]), expected[:3], atol=1e-5)


def test_attach_to_a_compiled_model(setting, rng):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1))
    _, _, morphed = setting
    key = mole.MorphKey.generate((3, 8, 8), insecure_seed=bytes(32))
    compiled = torch.compile(model, backend="eager")
    module = attach(compiled, mole.augment(export_first_layer(compiled, (3, 8, 8)), key))
    assert model[0] is module
    assert torch.allclose(compiled(morphed), module(morphed))


@needs_16_bits
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_behaves_like_a_convolution(setting, dtype):
    _, module, morphed = setting
    expected = module(morphed)
    with torch.autocast("cpu", dtype=dtype):
        features = module(morphed)
    assert features.dtype == dtype
    assert (features.float() - expected).norm() < 0.02 * expected.norm()


def test_replicas_share_the_weight_and_agree(setting):
    """What nn.DataParallel does to every module, and what copying does."""
    _, module, morphed = setting
    expected = module(morphed)
    replica = module._replicate_for_data_parallel()
    replica._buffers = dict(module._buffers)
    assert torch.equal(replica(morphed), expected)
    assert torch.equal(copy.deepcopy(module)(morphed), expected)
    with ThreadPoolExecutor(2) as pool:  # one replica a thread, as nn.DataParallel runs them
        outputs = pool.map(lambda run, batch: run(batch), [module, replica], [morphed[:3], morphed[3:]])
    assert torch.allclose(torch.cat(list(outputs)), expected, atol=1e-5)


def test_it_works_without_a_model(rng):
    layer = mole.FirstLayer.linear(rng.normal(size=(4, 6)).astype(np.float32), None, input_shape=(6,))
    key = mole.MorphKey.generate((6,), insecure_seed=bytes(32))
    images = rng.normal(size=(3, 6)).astype(np.float32)
    module = AugmentedModule(mole.augment(layer, key))
    features = module(torch.from_numpy(mole.morph(images, key))).numpy()
    assert np.allclose(features, (images @ layer.weight.T)[:, key.channel_order(4)], atol=1e-5)


class Padded(nn.Module):
    """Pads its input, so that the augmented layer has to cut it again."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.stem(input=nn.functional.pad(x, (0, 1, 1, 0))).relu()


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("convert", [torch.jit.script, torch.fx.symbolic_trace])
@pytest.mark.parametrize(
    "make", [Padded, lambda: nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.ReLU(True))]
)
def test_an_attached_model_is_scripted_and_traced(setting, make, convert):
    _, _, morphed = setting
    model = make()
    form = "dense" if setting[1].mixing is None else "factored"
    key = mole.MorphKey.generate((3, 8, 8))
    attach(model, mole.augment(export_first_layer(model, (3, 8, 8)), key, form=form))
    converted = convert(model)
    for batch in (morphed, morphed[:2]):
        with torch.no_grad():
            assert torch.equal(converted(batch), model(batch))
    with pytest.raises((ShapeError, torch.jit.Error)):
        converted(morphed[:, :, :4])


def zero(module):
    if hasattr(module, "weight"):
        nn.init.zeros_(module.weight)


def zero_data(module):
    if getattr(module, "bias", None) is not None:
        module.bias.data.zero_()


def rebind(module):
    if hasattr(module, "weight"):
        module.weight = nn.Parameter(torch.zeros_like(module.weight))


@pytest.mark.parametrize("init", [zero, zero_data, rebind])
def test_initialising_a_model_leaves_the_augmented_layer_alone_and_says_so(setting, init):
    model, module, morphed = setting
    expected, kept = module(morphed), {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.warns(MoleWarning, match="stays as it is: initialise a model before"):
        assert model.apply(init) is model
    assert list(module.parameters()) == []
    assert all(torch.equal(tensor, kept[name]) for name, tensor in module.state_dict().items())
    assert torch.equal(module(morphed), expected)
    touched = model[3].bias if init is zero_data else model[3].weight
    assert not touched.any()


def test_other_functions_are_applied_to_it_too(setting):
    model, module, _ = setting
    seen = []
    model.apply(lambda part: seen.append((part, part.weight.mean() if part is module else None)))
    assert module in [part for part, _ in seen]
