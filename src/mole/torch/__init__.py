"""Morphed Learning in PyTorch: export a model's first layer, attach an augmented one, train on a delivery.

    layer = mole.torch.export_first_layer(model, input_shape=(3, 32, 32))   # developer, to the provider
    mole.torch.attach(model, augmented)                                     # developer, from the provider
    mole.torch.train(model, mole.torch.MorphedDataset("delivery", "train"), epochs=10)

Or all of it, from the delivery to a checkpoint: `mole.torch.train_on("delivery", out="model.safetensors")`.

The developer's side: nothing here knows about keys.
"""

import importlib
from typing import TYPE_CHECKING, Any

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    from mole.errors import MissingExtraError

    raise MissingExtraError("mole.torch needs PyTorch", "torch") from None

from mole.torch.attach import attach
from mole.torch.export import export_first_layer
from mole.torch.find import FoundLayer, find_first_layer
from mole.torch.key_check import check_key
from mole.torch.module import AugmentedModule
from mole.torch.trace import Operation

if TYPE_CHECKING:
    from mole.exchange.checkpoint_files import CheckpointFacts
    from mole.exchange.served_model import ServedFacts, ServedFile
    from mole.protection.front_file import Front
    from mole.scores import Evaluation, Score
    from mole.torch.answering import evaluate_on, predict_on
    from mole.torch.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
    from mole.torch.dataset import MorphedDataset, ShardSampler
    from mole.torch.evaluation import evaluate, predict
    from mole.torch.feature_augment import FeatureAugment, augment_features
    from mole.torch.front import Images, make_front
    from mole.torch.head_training import FittedHead, fit_head_on
    from mole.torch.learning_rules import StepDecay
    from mole.torch.mixing import Mixed, mixup
    from mole.torch.models import build_model
    from mole.torch.onnx_export import export_model, export_on
    from mole.torch.pretrained import load_pretrained, save_pretrained
    from mole.torch.resume import ResumeFile
    from mole.torch.trainer import Epoch, train
    from mole.torch.workflows import train_on

__all__ = [
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

_HOMES = {
    "Checkpoint": "mole.torch.checkpoint",
    "CheckpointFacts": "mole.exchange.checkpoint_files",
    "Epoch": "mole.torch.trainer",
    "Evaluation": "mole.scores",
    "FeatureAugment": "mole.torch.feature_augment",
    "FittedHead": "mole.torch.head_training",
    "Front": "mole.protection.front_file",
    "Images": "mole.torch.front",
    "Mixed": "mole.torch.mixing",
    "MorphedDataset": "mole.torch.dataset",
    "ResumeFile": "mole.torch.resume",
    "Score": "mole.scores",
    "ServedFacts": "mole.exchange.served_model",
    "ServedFile": "mole.exchange.served_model",
    "ShardSampler": "mole.torch.dataset",
    "StepDecay": "mole.torch.learning_rules",
    "augment_features": "mole.torch.feature_augment",
    "build_model": "mole.torch.models",
    "evaluate": "mole.torch.evaluation",
    "evaluate_on": "mole.torch.answering",
    "export_model": "mole.torch.onnx_export",
    "export_on": "mole.torch.onnx_export",
    "fit_head_on": "mole.torch.head_training",
    "load_checkpoint": "mole.torch.checkpoint",
    "load_pretrained": "mole.torch.pretrained",
    "make_front": "mole.torch.front",
    "mixup": "mole.torch.mixing",
    "predict": "mole.torch.evaluation",
    "predict_on": "mole.torch.answering",
    "save_checkpoint": "mole.torch.checkpoint",
    "save_pretrained": "mole.torch.pretrained",
    "train": "mole.torch.trainer",
    "train_on": "mole.torch.workflows",
}


def __getattr__(name: str) -> Any:
    """Load a name's home at first use: attaching a layer needs no pyarrow."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mole.torch' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
