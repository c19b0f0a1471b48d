"""A source without its labels: for requests, whose labels are what the developer is to predict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mole.data.source import Sample, Source, Split


def without_labels(source: Source) -> Source:
    """The same samples, without labels and without the names of classes."""
    splits = {name: _Unlabelled(split) for name, split in source.splits.items()}
    return replace(source, splits=splits, classes=None)


@dataclass(frozen=True)
class _Unlabelled:
    """A split of which nobody learns the classes."""

    split: Split
    labels: None = None

    @property
    def extra(self) -> Mapping[str, Sequence[Any]]:
        return self.split.extra

    def __len__(self) -> int:
        return len(self.split)

    def read(self, index: int) -> Sample:
        return self.split.read(index)

    def name_of(self, index: int) -> str:
        return self.split.name_of(index)
