"""Morphed Learning in PyTorch: export a model's first layer, attach an augmented one.

    layer = mole.torch.export_first_layer(model, input_shape=(3, 32, 32))   # developer, to the provider
    mole.torch.attach(model, augmented)                                     # developer, from the provider

The developer's side: nothing here knows of keys.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    from mole.errors import MissingExtraError

    raise MissingExtraError("mole.torch needs PyTorch: pip install 'morphed-learning[torch]'") from None

from mole.torch.attach import attach
from mole.torch.export import export_first_layer
from mole.torch.find import find_first_layer
from mole.torch.module import AugmentedModule

__all__ = ["AugmentedModule", "attach", "export_first_layer", "find_first_layer"]
