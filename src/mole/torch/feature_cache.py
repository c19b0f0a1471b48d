"""Keep what the augmented layer gives: it is frozen, so every epoch would compute the same once more.

The first time a row is needed, its features are computed; from then on they come from memory, and neither
the row nor the layer is touched again. The training stays the same to the last bit: features are kept only
from batches as large as those that will use them, because how a matrix product is rounded may depend on the
number of rows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, default_collate

from mole.errors import ParameterError, UnsupportedLayerError
from mole.quantities import size_text
from mole.torch.batches import samples_and_labels
from mole.torch.dataset import MorphedDataset
from mole.torch.find import find_first_layer
from mole.torch.module import AugmentedModule, augmented_part
from mole.torch.running import unwrapped

SHARE = 4  # of the free memory, features may take one part in so many
MEMORY = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # what a container may use
FIXED = (MorphedDataset, TensorDataset)  # whose rows are the same whenever they are read

Row = tuple[Tensor, Tensor]


class CachedFeatures(Dataset[Row]):
    """The features of a data set's rows, and their labels.

    Attributes:
        sampler: the data set's own way to shuffle; None if it has none.
        split: its name, if it is a split of a delivery.
    """

    def __init__(
        self, dataset: Dataset[Any], module: AugmentedModule, *, batch_size: int, device: torch.device
    ) -> None:
        """Make room for the features; none is computed yet.

        Args:
            dataset: samples with labels, the same ones every time.
            module: the augmented layer.
            batch_size: rows of the batches that will be asked for.
            device: where the features are kept.
        """
        rows = len(dataset)  # type: ignore[arg-type]
        self._dataset, self._module = dataset, module
        self._batch = min(batch_size, rows)
        self._features = torch.empty((rows, *module.output_shape), dtype=module.weight.dtype, device=device)
        self._labels = torch.zeros(rows, dtype=torch.int64)
        self._known = torch.zeros(rows, dtype=torch.bool)
        self.sampler = getattr(dataset, "sampler", None)
        self.split = getattr(dataset, "split", None)

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, index: int) -> Row:
        """The features of one row, and its label."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Row]:
        """Features of several rows, with their labels: what a `DataLoader` calls for a batch."""
        if len(indices) != self._batch:  # the last batch of a pass
            return list(zip(*self._computed(indices), strict=True))
        wanted = torch.as_tensor(indices)
        if not self._known[wanted].all():
            features, labels = self._computed(indices)
            self._features[wanted.to(features.device)] = features
            self._labels[wanted], self._known[wanted] = labels, True
        return [(self._features[index], self._labels[index]) for index in indices]

    def _computed(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Features by the layer itself, without the hooks that a model may have put on it."""
        several = getattr(self._dataset, "__getitems__", None)
        rows = several(indices) if several else [self._dataset[index] for index in indices]
        samples, labels = samples_and_labels(default_collate(rows))
        with torch.no_grad():
            return self._module.forward(samples.to(self._features.device)), labels


class FromFeatures(nn.Module):
    """A model that is given the features of its first layer, and answers as if it got the samples."""

    def __init__(self, model: nn.Module, module: AugmentedModule) -> None:
        super().__init__()
        self.model = model
        self._first = (module,)  # not a module of this one: it is the model's

    def forward(self, features: Tensor) -> Any:
        """The model's answer, for features (b, *output_shape)."""
        (first,) = self._first
        samples = features.new_zeros((len(features), *first.input_shape))  # for the model to look at
        vars(first)["forward"] = lambda input: features
        try:
            return self.model(samples)
        finally:
            del vars(first)["forward"]


def cached_module(
    model: nn.Module, datasets: Sequence[Dataset[Any]], *, wanted: bool | None, device: torch.device
) -> AugmentedModule | None:
    """The augmented layer whose features should be kept for these data sets; None if they should not be.

    Args:
        model: what is trained.
        datasets: what it is trained and scored on.
        wanted: True to keep them, False not to; None to keep them where they fit into a quarter of the
            free memory.
        device: where they would be kept.

    Raises:
        ParameterError: if they are wanted and cannot be kept, with the reason.
    """
    if wanted is False:
        return None
    part = augmented_part(model)
    reason = "the model has no augmented layer" if part is None else None
    if part is not None:
        size, free = sum(features_size(part.module, data) for data in datasets), free_memory(device)
        if wanted and free is not None and size > free:
            reason = f"they take {size_text(size)}, and {size_text(free)} of memory is free"
        elif not wanted and (free is None or size > free // SHARE):
            return None
        else:
            reason = _why_not(model, part.module, datasets)
    if wanted and reason is not None:
        raise ParameterError(f"features cannot be kept in memory: {reason}")
    return None if part is None or reason is not None else part.module


def features_size(module: AugmentedModule, dataset: Dataset[Any]) -> int:
    """Bytes of the features of all rows."""
    elements = torch.Size(module.output_shape).numel()
    return len(dataset) * elements * module.weight.element_size()  # type: ignore[arg-type]


def free_memory(device: torch.device) -> int | None:
    """Bytes of memory that nobody uses; None where that cannot be told."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type != "cpu":
        return None
    found = [_number(MEMORY, "MemAvailable:", 1024), _left_in_group()]
    return min((size for size in found if size is not None), default=None)


def _why_not(model: nn.Module, module: AugmentedModule, datasets: Sequence[Dataset[Any]]) -> str | None:
    """Why a row might not have the same features every time; None if nothing says so."""
    for data in datasets:
        if not _is_fixed(data):
            return f"a {type(data).__name__} may give other rows each time"
    if unwrapped(model) is not model:
        return f"the model is wrapped in a {type(model).__name__}"
    if module._forward_pre_hooks:
        return "a hook changes what the first layer takes"
    after = dict(module._forward_hooks)  # may do anything: features are kept before they see them
    module._forward_hooks.clear()
    try:
        return None if find_first_layer(model, module.input_shape).module is module else "it is not first"
    except UnsupportedLayerError as error:
        return "; ".join(error.reasons)
    finally:
        module._forward_hooks.update(after)


def _is_fixed(dataset: Dataset[Any]) -> bool:
    if type(dataset) is Subset:
        return _is_fixed(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return all(map(_is_fixed, dataset.datasets))
    return type(dataset) in FIXED


def _left_in_group() -> int | None:
    """What a container has left, of memory that is not taken by files it could read again."""
    most, used = (_number(GROUP / name, "") for name in ("memory.max", "memory.current"))
    if most is None or used is None:
        return None
    return max(0, most - used + (_number(GROUP / "memory.stat", "inactive_file ") or 0))


def _number(file: Path, before: str, unit: int = 1) -> int | None:
    """The number after some text in a file of the system's; None where there is none."""
    try:
        lines = [line for line in file.read_text().splitlines() if line.startswith(before)]
        return int(lines[0].removeprefix(before).split()[0]) * unit
    except (OSError, ValueError, IndexError):
        return None
