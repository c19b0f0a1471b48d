"""Whether a model and the data that it gets belong together."""

import warnings
from typing import Any
from weakref import WeakSet

from torch import nn
from torch.utils.data import ConcatDataset, Dataset, Subset

from mole.errors import MoleWarning, ParameterError
from mole.torch.module import augmented_part

_WARNED: WeakSet[nn.Module] = WeakSet()
_NO_LAYER = (
    "the data is morphed and the model has no augmented layer, so that it learns far less, if anything: "
    "attach the one that came with the data, mole.torch.attach(model, delivery.layer())"
)


def check_key(model: nn.Module, dataset: Dataset[Any]) -> None:
    """See that model and data belong together: ask before a training loop of your own.

        check_key(model, MorphedDataset("delivery", "train"))

    A model without an augmented layer is warned of, once for each model: nothing else would tell that it
    was forgotten. Data that is not morphed fits every model.

    Raises:
        ParameterError: if the data was morphed with another key than the augmented layer was made with.
    """
    part, keys = augmented_part(model), _keys_of(dataset)
    if part is None:
        if keys and model not in _WARNED:
            _WARNED.add(model)
            warnings.warn(_NO_LAYER, MoleWarning, stacklevel=3)
        return
    for data_key in sorted(keys - {part.module.key_fingerprint}):
        raise ParameterError(
            f"the data was morphed with key {data_key} and the model's augmented layer was made with "
            f"{part.module.key_fingerprint}: attach the augmented layer that came with this data"
        )


def _keys_of(dataset: Dataset[Any]) -> set[str]:
    """The keys that data was morphed with, also that of a part of it, or of several data sets in one."""
    if isinstance(dataset, ConcatDataset):
        return set().union(*map(_keys_of, dataset.datasets))
    if isinstance(dataset, Subset):
        return _keys_of(dataset.dataset)
    key = getattr(dataset, "key_fingerprint", None)
    return set() if key is None else {key}
