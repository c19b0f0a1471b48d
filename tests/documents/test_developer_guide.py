"""The code of docs/developer.md runs, from top to bottom."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import mole
from deliveries import SHAPE, make_key, write_npz

GUIDE = (Path(__file__).parents[2] / "docs" / "developer.md").read_text()


def test_its_code_runs(tmp_path, monkeypatch):
    for package in ("datasets", "transformers", "accelerate"):
        pytest.importorskip(package, reason=f"needs {package}")
    import datasets
    from transformers import ResNetConfig, ResNetForImageClassification

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    config = ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], layer_type="basic", num_labels=10)
    model = ResNetForImageClassification(config)
    layer = mole.torch.export_first_layer(model, SHAPE)
    mole.deliver(
        write_npz(tmp_path / "d.npz", train=20, test=0), layer, make_key(), "delivery", dtype="int8"
    )
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, object] = {"model": model}
    for number, block in enumerate(blocks):
        if number == 2:
            with pytest.warns(mole.errors.MoleWarning, match="no augmented layer"):
                exec(block, names)
        else:
            exec(block, names)
    expected = torch.stack([sample for sample, _ in mole.torch.MorphedDataset("delivery", "train")])
    assert np.array_equal(names["images"], expected.numpy())
    assert torch.equal(names["rows"][3]["pixel_values"], expected[3])
    with torch.inference_mode():
        answers = [names[name].eval()(expected).logits for name in ("model", "again")]
        assert torch.allclose(*answers, atol=1e-6)
        assert torch.allclose(names["program"].module()(expected[:1]).logits, answers[0][:1], atol=1e-5)
