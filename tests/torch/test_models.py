"""Models by name, and weights from files."""

import sys

import pytest
import torch
from safetensors.torch import save_file

from glyphs import FACTS, SHAPE, network
from mole.errors import FileError, ParameterError
from mole.torch import (
    save_checkpoint,
)
from mole.torch.models import build_model, load_model, load_weights
from mole.torch.networks import build_network

FACTORIES = """
from torch import nn
def small(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))
def bad():
    raise RuntimeError("no weights here")
def text():
    return "model"
number = 3
"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
    (tmp_path / "my_factories.py").write_text(FACTORIES)
    (tmp_path / "my_broken.py").write_text("import a_module_that_is_not_there")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_factories", None)


@pytest.mark.usefixtures("factories")
def test_a_model_by_the_name_of_its_factory():
    path = list(sys.path)
    assert load_model("my_factories:small", input_shape=SHAPE, classes=6)[1].out_features == 6
    assert sys.path == path


@pytest.mark.usefixtures("factories")
def test_a_model_is_built_in_or_from_a_factory_with_weights_if_there_are_some(tmp_path):
    assert build_model("my_factories:small", (1, 8, 8), 6)[1].out_features == 6
    assert build_model("small_vgg", SHAPE, 4)[-1].out_features == 4
    known = network(seed=1)
    torch.save(known.state_dict(), tmp_path / "weights.pt")
    built = build_model("small_vgg", SHAPE, 4, tmp_path / "weights.pt")
    assert all(torch.equal(tensor, known.state_dict()[name]) for name, tensor in built.state_dict().items())
    with pytest.raises(FileError, match="does not fit the model"):
        build_model("my_factories:small", (1, 8, 8), 6, tmp_path / "weights.pt")
    with pytest.raises(ParameterError, match="no built-in network 'my_factories'"):
        build_model("my_factories", (1, 8, 8), 6)


@pytest.mark.usefixtures("factories")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_factories", "write it as module:function"),
        (":small", "write it as module:function"),
        (
            "my_factoriez:small",
            r"'my_factoriez' cannot be imported: No module named .*: is my_factoriez\.py in this folder",
        ),
        ("my_broken:small", "'my_broken' cannot be imported: No module named 'a_module[^:]*$"),
        ("my_factories:smal", r"has no function 'smal': did you mean my_factories:small\?"),
        ("my_factories:number", "has no function 'number'"),
        ("my_factories:bad", "could not make a model: no weights here"),
        ("my_factories:text", "gives a str, not a torch.nn.Module"),
    ],
)
def test_factories_that_do_not_work(name, message):
    with pytest.raises(ParameterError, match=message):
        load_model(name)


def test_weights_from_files(tmp_path):
    model, samples = network(seed=1).eval(), torch.randn(2, *SHAPE)
    torch.save(model.state_dict(), tmp_path / "one.pt")
    torch.save({"state_dict": model.state_dict(), "epoch": 3}, tmp_path / "two.pth")
    save_file(model.state_dict(), tmp_path / "three.safetensors")
    save_checkpoint(tmp_path / "four.safetensors", model, FACTS)
    torch.save({"model": model.state_dict(), "optimizer": {"state": {}}}, tmp_path / "five.pt")
    torch.save({"model": {"state_dict": model.state_dict()}}, tmp_path / "six.pt")
    for name in (
        "one.pt", "two.pth", "three.safetensors", "four.safetensors", "five.pt", "six.pt",
    ):  # fmt: skip
        other = network(seed=2).eval()
        load_weights(other, tmp_path / name)
        assert torch.equal(other(samples), model(samples))


class Evil:
    def __reduce__(self):
        return (print, ("code that must not run",))


def test_weights_from_wrong_files(tmp_path, capsys):
    torch.save(Evil(), tmp_path / "evil.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    torch.save(build_network("small_resnet", SHAPE, 4).state_dict(), tmp_path / "other.pt")
    wide = build_network("small_vgg", SHAPE, 9).state_dict()
    torch.save(wide, tmp_path / "wide.pt")
    (tmp_path / "text.pt").write_text("hello")
    (tmp_path / "text.safetensors").write_text("hello")
    (tmp_path / "model.onnx").write_text("hello")
    (tmp_path / "folder.pt").mkdir()
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, message in (
        ("evil.pt", "holds no weights, or it is damaged"),
        ("list.pt", "holds something other than weights"),
        ("other.pt", r"does not fit the model: '0.bias' is missing, .* and \d+ more"),
        ("wide.pt", r"does not fit the model: '\d+.weight' is \(9, 256\) and should be \(4, 256\)"),
        ("text.pt", "holds no weights, or it is damaged"),
        ("text.safetensors", "holds no weights, or it is damaged"),
        ("model.onnx", "is not a file of weights: give .safetensors, .pt, .pth"),
        ("missing.pt", "missing.pt cannot be read: it does not exist"),
        ("folder.pt", "folder.pt cannot be read: it is a folder"),
    ):
        with pytest.raises(FileError, match=message):
            load_weights(model, tmp_path / name)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert "must not run" not in capsys.readouterr().out
