"""The code of docs/developer.md runs, from top to bottom."""

import json
import re
import statistics
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
    assert len(blocks) == 6
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


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def test_the_table_of_augmentations_is_the_benchmarks():
    result = json.loads((RESULTS / "augmentations.json").read_text())
    rows = [f"| {arm['arm']} | {arm['accuracy']} % | {arm['spread']} % |" for arm in result["arms"]]
    assert len(rows) == 6
    assert "\n".join(rows) in GUIDE
    assert f"{result['data'].split()[1]} images of Fashion-MNIST" in " ".join(GUIDE.split())
    for arm in result["arms"]:
        assert arm["accuracy"] == round(100 * statistics.mean(arm["accuracies"]), 1)


def test_the_table_of_kept_features_is_the_benchmarks():
    rows = [
        f"| {row['network']} | {row['layout']} | {row['computed_over_plain']} | {row['kept_over_plain']} | "
        f"{row['times_faster']} | {row['kept_mb_per_1000_rows']} MB |"
        for row in json.loads((RESULTS / "frozen_layer.json").read_text())["results"]
    ]
    assert len(rows) == 4
    assert "\n".join(rows) in GUIDE
