"""What is exported is what PyTorch computes, in every form of the augmented layer."""

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import mole
from deliveries import make_layer
from mole.errors import ParameterError
from mole.protection.onnx_session import OnnxSession
from mole.torch import CheckpointFacts, attach, export_first_layer, export_model

FORMS = {
    "dense": ({}, "dense"),
    "factored": ({}, "factored"),
    "tiles": ({"tile": 4}, None),
    "filled": ({"tile": 3}, None),
}


@pytest.mark.parametrize("name", FORMS)
def test_probabilities_are_those_of_torch(tmp_path, rng, name):
    cut, form = FORMS[name]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 5)).eval()
    key = mole.MorphKey.generate((3, 8, 8), insecure_seed=bytes(32), **cut)
    attach(model, mole.augment(make_layer(), key, form=form))
    made = export_model(model, CheckpointFacts("net", (3, 8, 8), 5), tmp_path / "model.onnx")
    assert made.facts.key_fingerprint == key.fingerprint
    assert made.facts.input_shape == key.input_shape
    session = OnnxSession.open(tmp_path / "model.onnx")
    for rows in (1, 2, 7):
        morphed = mole.morph(rng.normal(size=(rows, 3, 8, 8)).astype(np.float32), key)
        with torch.no_grad():
            expected = torch.softmax(model(torch.from_numpy(morphed)), 1).numpy()
        assert np.allclose(session(morphed), expected, atol=1e-5)


def test_tiles_cost_a_server_a_handful_of_operators(tmp_path):
    """A write into the middle of a tensor would be a dozen of them each."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()).eval()
    key = mole.MorphKey.generate((3, 8, 8), insecure_seed=bytes(32), tile=4)
    layer = attach(model, mole.augment(export_first_layer(model, (3, 8, 8)), key))
    export_model(model, CheckpointFacts("net", (3, 8, 8), 256), tmp_path / "model.onnx")
    operators = [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    assert operators.count("ConvTranspose") == 1
    assert len(operators) <= 10
    assert {"ScatterND", "Conv", "BatchNormalization"}.isdisjoint(operators)
    assert model[0] is layer  # as it was


class TwoFaced(nn.Module):
    """Gives other answers while it is exported."""

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        sign = 1 if torch.compiler.is_exporting() else -1
        return sign * samples.flatten(1)[:, :3]


def test_what_onnxruntime_answers_otherwise_is_not_written(tmp_path):
    with pytest.raises(ParameterError, match="other answers for this network than PyTorch"):
        export_model(TwoFaced(), CheckpointFacts("net", (3, 2, 2), 3), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
