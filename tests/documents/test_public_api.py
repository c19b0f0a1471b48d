"""What the package promises: its names, its version, its licence."""

import re
from pathlib import Path

import pytest

import mole

ROOT = Path(__file__).parents[2]


def test_the_public_names():
    assert sorted(mole.__all__) == [
        "AugmentedLayer",
        "Client",
        "Delivery",
        "FirstLayer",
        "MoleError",
        "MorphKey",
        "Normalisation",
        "Protect",
        "__version__",
        "audit",
        "augment",
        "decode",
        "deliver",
        "load",
        "morph",
        "open_source",
        "recover",
        "save",
        "unmorph",
        "verify",
    ]
    assert all(hasattr(mole, name) for name in mole.__all__)


def test_the_public_names_of_mole_torch():
    assert mole.torch.__all__ == [
        "AugmentedModule",
        "Checkpoint",
        "CheckpointFacts",
        "Epoch",
        "Evaluation",
        "FeatureAugment",
        "FittedHead",
        "FoundLayer",
        "Front",
        "Images",
        "Mixed",
        "MorphedDataset",
        "Operation",
        "ResumeFile",
        "Score",
        "ServedFacts",
        "ServedFile",
        "ShardSampler",
        "StepDecay",
        "attach",
        "augment_features",
        "build_model",
        "check_key",
        "evaluate",
        "evaluate_on",
        "export_first_layer",
        "export_model",
        "export_on",
        "find_first_layer",
        "fit_head_on",
        "load_checkpoint",
        "load_pretrained",
        "make_front",
        "mixup",
        "predict",
        "predict_on",
        "save_checkpoint",
        "save_pretrained",
        "train",
        "train_on",
    ]
    assert all(hasattr(mole.torch, name) for name in mole.torch.__all__)


def test_a_name_that_is_not_there_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'tensorflow'"):
        _ = mole.tensorflow


def test_the_changelog_knows_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (\S+)", changelog, flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == mole.__version__
