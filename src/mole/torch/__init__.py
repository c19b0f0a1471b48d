"""Morphed Learning in PyTorch: export a model's first layer, attach an augmented one, train on a delivery.

    layer = mole.torch.export_first_layer(model, input_shape=(3, 32, 32))   # developer, to the provider
    mole.torch.attach(model, augmented)                                     # developer, from the provider
    mole.torch.train(model, mole.torch.MorphedDataset("delivery", "train"), epochs=10)

The developer's side: nothing here knows of keys.
"""

import importlib
from typing import TYPE_CHECKING, Any

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    from mole.errors import MissingExtraError

    raise MissingExtraError("mole.torch needs PyTorch: pip install 'morphed-learning[torch]'") from None

from mole.exchange.checkpoint_files import CheckpointFacts
from mole.torch.attach import attach
from mole.torch.checkpoint import load_checkpoint, save_checkpoint
from mole.torch.export import export_first_layer
from mole.torch.find import find_first_layer
from mole.torch.module import AugmentedModule
from mole.torch.trainer import evaluate, train

if TYPE_CHECKING:
    from mole.torch.dataset import MorphedDataset
    from mole.torch.evaluation import predict

__all__ = [
    "AugmentedModule",
    "CheckpointFacts",
    "MorphedDataset",
    "attach",
    "evaluate",
    "export_first_layer",
    "find_first_layer",
    "load_checkpoint",
    "predict",
    "save_checkpoint",
    "train",
]

_READS_SHARDS = {"MorphedDataset": "mole.torch.dataset", "predict": "mole.torch.evaluation"}


def __getattr__(name: str) -> Any:
    """Load what reads shards at first use: attaching a layer needs no pyarrow."""
    if name in _READS_SHARDS:
        return getattr(importlib.import_module(_READS_SHARDS[name]), name)
    raise AttributeError(f"module 'mole.torch' has no attribute {name!r}")
