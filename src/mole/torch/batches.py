"""What training, evaluation and prediction share: batches of a data set, and a model's answer to one."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from mole.errors import ParameterError, ShapeError
from mole.torch.module import AugmentedModule


def shuffled(dataset: Dataset[Any], *, batch_size: int, seed: int, workers: int) -> DataLoader[Any]:
    """Batches in a random order that the seed decides, another one each time."""
    rows = size_of(dataset)
    alone = rows > batch_size and rows % batch_size == 1  # batch normalisation cannot learn from one row
    own = getattr(dataset, "sampler", None)
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=own(seed=seed) if own else None,
        shuffle=None if own else True,
        generator=torch.Generator().manual_seed(seed),
        num_workers=workers,
        persistent_workers=workers > 0,
        drop_last=alone,
    )


def in_order(dataset: Dataset[Any], *, batch_size: int, workers: int) -> DataLoader[Any]:
    """Batches in the order of the data set."""
    size_of(dataset)
    generator = torch.Generator().manual_seed(0)  # nothing is drawn from it but the workers' seeds
    return DataLoader(dataset, batch_size=batch_size, num_workers=workers, generator=generator)


def size_of(dataset: Dataset[Any]) -> int:
    """Number of rows; an error if there are none."""
    rows = len(dataset)  # type: ignore[arg-type]
    if not rows:
        raise ParameterError("the data set has no rows: give another split")
    return rows


def samples_and_labels(batch: Any) -> tuple[Tensor, Tensor]:
    """Both parts of a batch; an error if there are no labels."""
    if not isinstance(batch, list | tuple) or len(batch) != 2:
        raise ParameterError("the data has no labels: give a delivery with labels")
    return batch[0], batch[1]


def logits_of(model: nn.Module, samples: Tensor) -> Tensor:
    """The model's answer, (batch, classes), also where a model wraps it as those of Hugging Face do."""
    output = model(samples)
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        raise ShapeError("the model does not give one row of class scores a sample: give a classifier")
    return logits


def augmented_part(model: nn.Module) -> AugmentedModule | None:
    """The augmented layer of a model, if one is attached."""
    return next((part for part in model.modules() if isinstance(part, AugmentedModule)), None)


def check_key(model: nn.Module, dataset: Dataset[Any]) -> None:
    """Refuse data that was morphed with another key than the model's augmented layer."""
    part, data_key = augmented_part(model), getattr(dataset, "key_fingerprint", None)
    if part is not None and data_key is not None and part.key_fingerprint != data_key:
        raise ParameterError(
            f"the data was morphed with key {data_key} and the model's augmented layer was made with "
            f"{part.key_fingerprint}: attach the augmented layer that came with this data"
        )


def device_of(model: nn.Module, device: str | None = None) -> torch.device:
    """The device by its name, or else where the model is."""
    if device is None:
        tensors = [*model.parameters(), *model.buffers()]
        return tensors[0].device if tensors else torch.device("cpu")
    try:
        torch.empty(0, device=device)
        return torch.device(device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ParameterError(
            f"device '{device}' cannot be used here: use cpu, or cuda if there is one"
        ) from None
