"""The images of a source as they were counted: only what was counted leaves.

A protected delivery reads its images twice, once to count what each gives away and once to make its row. In
between a file can change, or one that could not be read can be there again; its row would leave uncounted.
So what is read the second time is compared with what was counted.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy.typing as npt

from mole.provider.keys import MorphKey
from mole.sources.inspection import gathered
from mole.sources.source import BadSampleError, Sample, Source, Split, SplitAlike

SAMPLES_AT_ONCE = 1024

Digests = Sequence[str | None]
"""What names each sample of a split; None for one that could not be read."""


@dataclass(frozen=True)
class CountedSource:
    """A source whose images were all read once.

    Attributes:
        source: the same one, of which nothing can be read but what was counted.
        digests: what names each sample of each split.
    """

    source: Source
    digests: Mapping[str, Digests]

    @classmethod
    def of(cls, source: Source, key: MorphKey, *, skip_bad: bool) -> "CountedSource":
        """Read all of it.

        Raises:
            SourceError: if samples cannot be read, with all of them, unless they are left out.
        """
        errors: list[BadSampleError] = []
        digests = {name: list(_digests(split, key, errors)) for name, split in source.splits.items()}
        gathered(errors, source.count).refuse(skip_bad=skip_bad)
        splits = {name: _CountedSplit(split, key, digests[name]) for name, split in source.splits.items()}
        return cls(replace(source, splits=splits), digests)


@dataclass(frozen=True)
class _CountedSplit(SplitAlike):
    """A split that gives the samples that were counted, and no others."""

    key: MorphKey
    digests: Digests

    def read(self, index: int) -> Sample:
        """One sample; raises BadSampleError, also where it is not the one that was counted."""
        sample = self.split.read(index)
        if image_digest(sample.values, self.key) != self.digests[index]:
            raise BadSampleError(
                self.split.name_of(index),
                "it changed while the delivery was made: restore it and call again, or begin anew",
                advice={"replace": True},
            )
        return sample


@dataclass(frozen=True)
class NamingSplit(SplitAlike):
    """A split that keeps what names each sample that was read, until somebody takes it."""

    key: MorphKey
    digests: dict[int, str] = field(default_factory=dict)

    def read(self, index: int) -> Sample:
        """One sample; raises BadSampleError."""
        sample = self.split.read(index)
        self.digests[index] = image_digest(sample.values, self.key)
        return sample


def _digests(split: Split, key: MorphKey, errors: list[BadSampleError]) -> Iterator[str | None]:
    """What names each sample; and why some could not be read."""

    def digest(index: int) -> str | BadSampleError:
        try:
            values = split.read(index).values
        except BadSampleError as error:
            return error
        return image_digest(values, key)

    numbers = iter(range(len(split)))
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="digest") as pool:
        while some := list(islice(numbers, SAMPLES_AT_ONCE)):
            for found in pool.map(digest, some):
                if isinstance(found, BadSampleError):
                    errors.append(found)
                yield None if isinstance(found, BadSampleError) else found


def image_digest(values: npt.NDArray[Any], key: MorphKey) -> str:
    """What names a sample, from its numbers as they are stored; only the key's holder can compute it."""
    content = hashlib.sha256(values.tobytes()).hexdigest()
    return key.mac("protected-image", f"{values.dtype} {values.shape} {content}")
