"""A model with an augmented layer leaves PyTorch as any other does."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from deliveries import make_key, make_layer
from mole import augment, morph
from mole.torch import attach


@pytest.fixture(params=["dense", "factored", "tiles"])
def form(request):
    return request.param


@pytest.fixture
def key(form):
    return make_key(**({"tile": 4} if form == "tiles" else {"kappa": 1}))


@pytest.fixture
def model(form, key):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 5))
    attach(network, augment(make_layer(), key, form=None if form == "tiles" else form))
    return network.eval()


@pytest.fixture
def batch(rng, key):
    return torch.from_numpy(morph(rng.normal(size=(4, 3, 8, 8)).astype(np.float32), key))


def test_torch_export_with_batches_of_any_size(model, batch):
    program = torch.export.export(model, (batch[:2],), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    for samples in (batch, batch[:3]):
        assert torch.allclose(program.module()(samples), model(samples), atol=1e-5)
    wrong = torch.zeros(2, 3, 8, 7)
    with pytest.raises(Exception, match=r"8|shape|size"):
        program.module()(wrong)


def test_tracing_without_a_warning(model, batch):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        traced = torch.jit.trace(model, (batch[:2],))
    assert torch.allclose(traced(batch), model(batch), atol=1e-5)


@pytest.mark.parametrize("dynamo", [False, True])
def test_onnx(model, batch, tmp_path, dynamo):
    """Against ONNX's own reference in NumPy."""
    pytest.importorskip("onnx", reason="needs onnx")
    if dynamo:
        pytest.importorskip("onnxscript", reason="the newer exporter needs onnxscript")
    from onnx.reference import ReferenceEvaluator

    path = str(tmp_path / "model.onnx")
    any_size = (
        {"dynamic_shapes": ({0: torch.export.Dim.DYNAMIC},)}
        if dynamo
        else {"dynamic_axes": {"x": {0: "b"}}}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (batch[:2],), path, dynamo=dynamo, input_names=["x"], **any_size)
    evaluator = ReferenceEvaluator(path)
    (found,) = evaluator.run(None, {evaluator.input_names[0]: batch.numpy()})
    assert np.allclose(found, model(batch).detach().numpy(), atol=1e-5)
