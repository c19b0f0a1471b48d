"""What a whitened core learns from: a sample of plain data, and how much of one it was."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mole.errors import ParameterError, SourceError
from mole.progress import Progress, no_progress
from mole.provider.keys.derivation import KeyParameters, WordStream
from mole.quantities import counted
from mole.scheme.filling import filled
from mole.scheme.layouts import Layout, TilesLayout
from mole.scheme.shapes import Array, check_finite, check_floats, rows_of
from mole.scheme.whitening import BLOCKS_PER_SIDE, Whitening
from mole.sources.inspection import Problem
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError, Source

SAMPLE = 20_000  # images; more change next to nothing, and take time to read
SAMPLE_ELEMENTS = 1 << 28  # of all images together: a gigabyte of 32-bit numbers
TILES_PER_SIDE = 64  # of the core: enough, and an image has hundreds of tiles
IMAGES_OF_TILES = 1000  # or more, because the tiles of one image are alike


class Learnt(NamedTuple):
    """How much a whitened core knows of the data.

    >>> str(Learnt(images=4000, enough=6144, shrinkage=0.0021))
    'learned from 4,000 images, shrinkage 0.0021'

    Attributes:
        images: how many it was learned from.
        enough: how many it would have taken to learn without shrinkage.
        shrinkage: the share of the mean variance that every direction was taken to have at least.
    """

    images: int
    enough: int
    shrinkage: float

    @property
    def is_enough(self) -> bool:
        """Whether nothing had to be made up for."""
        return self.images >= self.enough

    def __str__(self) -> str:
        shrunk = f"shrinkage {self.shrinkage:.2g}" if not self.is_enough else "no shrinkage"
        return f"learned from {self.images:,} images, {shrunk}"


def learn_whitening(parameters: KeyParameters, seed: bytes, sample: Array | None) -> Whitening | None:
    """The whitening that a key with these parameters needs, from plain data; None where it needs none.

    The seed gives the weights by which images count (`mole.scheme.whitening`).
    """
    if parameters.core != "whitened":
        if sample is not None:
            raise ParameterError(f"a sample is for core='whitened', not '{parameters.core}'")
        return None
    if sample is None:
        raise ParameterError("core='whitened' learns from data: give a sample of plain images")
    layout = parameters.to_layout()
    whole = filled(check_floats(sample, "the sample"), layout)
    blocks = layout.to_blocks(check_finite(rows_of(whole, layout.input_shape), "the sample"))
    return Whitening.estimate(blocks, WordStream(seed, parameters.info("weights")).normals(len(blocks)))


def how_learnt(parameters: KeyParameters, whitening: Whitening | None) -> Learnt | None:
    """How much a key's whitening knows; None without one, or where its file does not say."""
    if whitening is None or whitening.blocks is None or whitening.shrinkage is None:
        return None
    enough = -(-BLOCKS_PER_SIDE * len(whitening.matrix) // parameters.kappa)
    return Learnt(whitening.blocks // parameters.kappa, enough, whitening.shrinkage)


def sample_size(layout: Layout) -> int:
    """How many images are worth learning from, and not more than memory can hold.

    >>> sample_size(Layout.of("rows", (3, 32, 32), 1)), sample_size(Layout.of("rows", (3, 256, 256), 48))
    (20000, 1365)
    >>> sample_size(Layout.of("tiles", (3, 224, 224), 784))
    1000
    """
    most = min(SAMPLE, max(1, SAMPLE_ELEMENTS // layout.elements))
    if isinstance(layout, TilesLayout):
        most = min(most, max(IMAGES_OF_TILES, TILES_PER_SIDE * layout.block // layout.blocks))
    return most


def sample_of(
    sources: Sequence[Source],
    preparation: Preparation,
    count: int = SAMPLE,
    *,
    skip_bad: bool = False,
    progress: Progress = no_progress,
) -> Array:
    """Plain data of at most `count` samples, spread evenly over all splits of all sources.

    Raises:
        BadSampleError: at the first sample that cannot be used, unless they are skipped.
        SourceError: if not one is left.
    """
    splits = [split for source in sources for split in source.splits.values()]
    ends = np.cumsum([0, *map(len, splits)])
    chosen = np.linspace(0, ends[-1] - 1, min(count, int(ends[-1]))).astype(int)
    parts, done = [], 0
    for split, start, end in zip(splits, ends, ends[1:], strict=False):
        indices = (chosen[(chosen >= start) & (chosen < end)] - start).tolist()
        before = done

        def report(read: int, _: int, before: int = before) -> None:
            progress(before + read, len(chosen))

        try:
            part = preparation.plain_samples(split, indices, skip_bad=skip_bad, progress=report)
        except BadSampleError as error:  # its header was good
            raise Problem(error, 1, [error.name]).error() from None
        parts.append(part)
        done += len(indices)
    if not any(map(len, parts)):
        raise SourceError(f"not one of {counted(len(chosen), 'image')} can be used: give others")
    return np.concatenate(parts)
