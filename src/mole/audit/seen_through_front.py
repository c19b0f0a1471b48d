"""Images seen through a front, without noise: those delivered, and others like them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from mole.audit.from_elsewhere import LEFT_OUT, NONE_LEFT, checked_public
from mole.errors import FileError, SourceError
from mole.exchange.manifest import Manifest
from mole.protection.channel import clip
from mole.protection.front_file import Front, read_front
from mole.protection.front_runner import FrontRunner
from mole.scheme.shapes import Array, element_count, unroll
from mole.sources.inspection import Problem
from mole.sources.plain_samples import read_many
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError, Source, Split

TRAITS = ("brighter", "richer in contrast")  # than the middle one of public images
AT_ONCE = 256  # images read at a time
MOST_PUBLIC, MOST_BYTES = 4096, 1 << 28  # of public images


@dataclass(frozen=True, eq=False)
class Seen:
    """Images, and what the front and the clip make of them.

    Attributes:
        images: the first of them, as the front takes them, (k, *input_shape).
        features: of all, without noise, (n, d).
        traits: of all, by name: what is asked about them, such as the mean of their pixels.
        labels: of all, as they left; None where they did not.
    """

    images: Array
    features: npt.NDArray[np.float64]
    traits: Mapping[str, npt.NDArray[np.float64]]
    labels: npt.NDArray[np.int64] | None = None


class FrontOfDelivery:
    """The front that a delivery was made with, at work; a context manager.

    Attributes:
        front: what its file says.
        preparation: how images become what it takes.
    """

    def __init__(self, front: Front, manifest: Manifest, most: float) -> None:
        self.front, self._most = front, most
        self.preparation = Preparation(
            front.input_shape, front.normalisation, manifest.mode, manifest.resize, "front"
        )
        self._run = FrontRunner(front)

    def see(
        self, split: Split, numbers: Sequence[int], keep: int, preparation: Preparation | None = None
    ) -> Seen:
        """See some samples of a split, or views of them, and keep the first as images."""
        images, features, traits = [], [], []
        for start in range(0, len(numbers), AT_ONCE):
            some = numbers[start : start + AT_ONCE]
            plain = read_many(preparation or self.preparation, split, some, skip_bad=False).plain
            images.append(plain[: max(0, keep - start)])
            features.append(clip(self._run(plain), self._most)[0])
            traits.append(self._traits(plain))
        return Seen(
            np.concatenate(images),
            np.concatenate(features),
            {name: np.concatenate([part[name] for part in traits]) for name in TRAITS},
        )

    def see_public(self, public: Source, *, skip_bad: bool) -> tuple[Seen, str | None]:
        """See public images, all of which are kept; and what to say where some were left out.

        Raises:
            MoleError: with all that is wrong, if some images cannot be used and are not skipped.
        """
        split = checked_public(public, self.preparation, skip_bad=skip_bad)
        most = min(MOST_PUBLIC, MOST_BYTES // (4 * element_count(self.front.input_shape)), len(split))
        chosen = np.linspace(0, len(split) - 1, max(1, most)).astype(int).tolist()
        try:
            plain, places, _ = read_many(self.preparation, split, chosen, skip_bad=skip_bad)
        except BadSampleError as error:  # its header was good
            raise Problem(error, 1, [error.name]).error() from None
        if not places:
            raise SourceError(NONE_LEFT)
        features, _ = clip(self._run(plain), self._most)
        left_out = len(chosen) - len(places)
        doubt = LEFT_OUT.format(left_out, len(chosen)) if left_out else None
        return Seen(plain, features, self._traits(plain)), doubt

    def _traits(self, plain: Array) -> dict[str, npt.NDArray[np.float64]]:
        look = self.front.normalisation
        pixels = unroll(plain if look is None else look.undo(plain)).astype(np.float64)
        return dict(zip(TRAITS, (pixels.mean(axis=1), pixels.std(axis=1)), strict=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.close()


def front_of(manifest: Manifest, path: Path) -> Front:
    """The front in a file, if it is the one that a delivery was made with.

    Raises:
        FileError: if it is another one, or none.
    """
    front = read_front(path)
    made_with = "" if manifest.protection is None else manifest.protection.front
    if front.digest != made_with:
        raise FileError(
            f"{path} is not the front of this delivery: its SHA-256 begins with {front.digest[:16]}, and "
            f"the manifest's with {made_with[:16]}: give the front that it was made with"
        )
    return front
