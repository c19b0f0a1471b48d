"""A data set in batches: shuffled to learn from, or in order to be scored."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from mole.errors import ParameterError

SAMPLES, LABELS = "pixel_values", "labels"  # in batches of dictionaries: what models of Hugging Face take


def shuffled(dataset: Dataset[Any], *, batch_size: int, seed: int, workers: int) -> DataLoader[Any]:
    """Batches in a random order, a new one for each pass; the same seed gives the same orders."""
    rows = _rows_of(dataset)
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
    _rows_of(dataset)
    generator = torch.Generator().manual_seed(0)  # only the workers' seeds are drawn from it
    return DataLoader(dataset, batch_size=batch_size, num_workers=workers, generator=generator)


def samples_of(batch: Any) -> Tensor:
    """The samples of a batch, with or without labels."""
    if isinstance(batch, dict):
        batch = batch[SAMPLES]
    samples: Tensor = batch[0] if isinstance(batch, list | tuple) else batch
    return samples


def samples_and_labels(batch: Any) -> tuple[Tensor, Tensor]:
    """Both parts of a batch; an error if it has no labels."""
    if isinstance(batch, dict) and LABELS in batch:
        return batch[SAMPLES], batch[LABELS]
    if not isinstance(batch, list | tuple) or len(batch) != 2:
        raise ParameterError("the data has no labels: give a delivery with labels")
    return batch[0], batch[1]


def _rows_of(dataset: Dataset[Any]) -> int:
    rows = len(dataset)  # type: ignore[arg-type]
    if not rows:
        raise ParameterError("the data set has no rows: give another split")
    return rows
