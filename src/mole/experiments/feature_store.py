"""Features of images, and what was found out from them, computed once and kept in a folder.

A front takes milliseconds for an image and there are many images, so what it gave is written down, some
images at a time: work that was interrupted goes on where it stopped. A file's name is a digest of what is
in it: the front's file and the images.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mole.experiments.image_sets import Part, preparation_for
from mole.experiments.pieces import PieceStore, digest_of
from mole.protection.front_file import Front, read_front
from mole.protection.front_runner import FrontRunner
from mole.scheme.shapes import Array, Shape
from mole.storage.atomic import new_file

IMAGES_AT_ONCE = 1000  # in one file


@dataclass(frozen=True)
class FeatureStore(PieceStore):
    """A folder of fronts and of what they gave, beside what was found out.

    Attributes:
        threads: for the front; None for one for each core.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        self.make_folder()

    def front(self, facts: tuple[object, ...], make: Callable[[Path], Front]) -> Front:
        """The front of some facts, made by a function if it is not there."""
        path = self.folder / f"front-{digest_of(facts)}.onnx"
        return read_front(path) if path.is_file() else make(path)

    def features(self, front: Front, part: Part, shape: Shape) -> Array:
        """What a front gives for images of a shape: (n, d)."""
        blocks = [part.cut(at, at + IMAGES_AT_ONCE) for at in range(0, len(part), IMAGES_AT_ONCE)]
        found: dict[int, Array] = {}
        missing = []
        for number, block in enumerate(blocks):
            kept = self._kept(front, block)
            found.update({} if kept is None else {number: kept})
            missing += [number] if kept is None else []
        if missing:
            with FrontRunner(front, threads=self.threads) as run:
                preparation = preparation_for(front.input_shape, shape, front.normalisation)
                for number in missing:
                    found[number] = run(blocks[number].plain(preparation))
                    with new_file(self._path(front, blocks[number])) as file, file.open("wb") as stream:
                        np.save(stream, found[number])
                    self.progress(blocks[number].stop - part.start, len(part))
        return np.concatenate([found[number] for number in range(len(blocks))])

    def _kept(self, front: Front, block: Part) -> Array | None:
        """What was kept of a block; None where nothing was, or something else."""
        try:
            kept: Array = np.load(self._path(front, block), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return kept if kept.shape == (len(block), front.dimensions) else None

    def _path(self, front: Front, block: Part) -> Path:
        return self.folder / f"{digest_of((front.digest, block.origin, block.start, block.stop))}.npy"
