"""Views of an image: shifted and mirrored copies that the provider makes, because the developer cannot.

Morphed data can be neither cropped nor flipped, so whoever wants a network to learn from crops and flips
has to make them before. A view is the image with a black border of four pixels, cut to its size again
somewhere, and perhaps mirrored. Which views there are of which image is drawn from the key, no view of an
image twice; the first is the image itself. Sample s of N views has the numbers s N to s N + N - 1, and each
becomes a row of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError
from mole.exchange.split_roles import TEST, VALIDATION
from mole.foreign_text import shown
from mole.limits import MAX_VIEWS
from mole.provider.keys import MorphKey
from mole.scheme.shapes import shape_text
from mole.sources.preparation import Preparation
from mole.sources.source import Source, Split

PADDING = 4
SHIFTS = 2 * PADDING + 1  # along either axis
ITSELF = PADDING * SHIFTS + PADDING  # the kind of view that is not shifted and not mirrored
AT_ONCE = 1 << 14  # samples whose views are drawn together

Kinds = npt.NDArray[np.uint8]
"""Which view: 81 m + 9 t + l, mirrored or not (m), cut t pixels from the top and l from the left."""


@dataclass(frozen=True, eq=False)
class ViewedPreparation(Preparation):
    """How numbers of a split, each of them a view of a sample, become plain data.

    Attributes:
        kinds: the views of each sample, (samples, views).
    """

    takes_samples: ClassVar[bool] = False

    kinds: Kinds = field(default_factory=lambda: np.full((0, 1), ITSELF, np.uint8))

    def read(self, split: Split, index: int) -> npt.NDArray[Any]:
        """One view of a sample, in the layer's input shape."""
        sample, view = divmod(index, self.kinds.shape[1])
        return view_of(super().read(split, sample), int(self.kinds[sample, view]))


def with_views(
    preparation: Preparation, key: MorphKey, delivery_id: str, split: str, *, samples: int, views: int
) -> Preparation:
    """How the numbers of a split become plain data: as before, where a sample has but one view."""
    if views == 1:
        return preparation
    kinds = drawn_views(key, f"{delivery_id}/{split}/{samples}", samples=samples, views=views)
    return ViewedPreparation(
        preparation.input_shape,
        preparation.normalisation,
        preparation.mode,
        preparation.resize,
        preparation.taker,
        kinds,
    )


def drawn_views(key: MorphKey, which: str, *, samples: int, views: int) -> Kinds:
    """The views of each sample, (samples, views): secret, and the same every time.

    >>> key = MorphKey.generate((1, 4, 4), insecure_seed=bytes(32))
    >>> drawn_views(key, "some delivery/train/2", samples=2, views=3).tolist()
    [[40, 38, 65], [40, 112, 51]]
    """
    stream = key.stream(f"views/{which}")
    kinds = np.full((samples, views), ITSELF, np.uint8)
    others = np.delete(np.arange(MAX_VIEWS, dtype=np.uint8), ITSELF)
    for start in range(0, samples, AT_ONCE):
        part = kinds[start : start + AT_ONCE, 1:]
        words = stream.take(part.size).reshape(part.shape)
        left, every = np.tile(others, (len(part), 1)), np.arange(len(part))
        for place in range(views - 1):  # as cards are dealt, one word each
            drawn = place + (words[:, place] % np.uint64(len(others) - place)).astype(np.intp)
            part[:, place] = left[every, drawn]
            left[every, drawn] = left[:, place]
    return kinds


def view_of(image: npt.NDArray[Any], kind: int) -> npt.NDArray[Any]:
    """One view of an image, (channels, height, width), in its own number type.

    >>> view_of(np.array([[[1, 2], [3, 4]]]), ITSELF + 1).tolist()
    [[[2, 0], [4, 0]]]
    """
    mirrored, shift = divmod(kind, SHIFTS * SHIFTS)
    top, left = divmod(shift, SHIFTS)
    height, width = image.shape[1:]
    framed = np.pad(image, ((0, 0), (PADDING, PADDING), (PADDING, PADDING)))
    cut: npt.NDArray[Any] = framed[:, top : top + height, left : left + width]
    return cut[..., ::-1] if mirrored else cut


def check_views(views: int, source: Source, preparation: Preparation) -> None:
    """Refuse views of what is not an image, or is not there to be learned from.

    Raises:
        ParameterError: with the reason.
    """
    if not isinstance(views, int) or not 1 <= views <= MAX_VIEWS:
        raise ParameterError(f"views is {views}: give a number from 1 to {MAX_VIEWS}")
    if views == 1:
        return
    name = learning_split(source.splits)
    if name.lower() in (*TEST, *VALIDATION):
        raise ParameterError(
            f"split '{shown(name)}' is not for learning, and views are for what is learned from: leave out "
            "views"
        )
    outline = source.splits[name].outline(0)
    if len(preparation.input_shape) != 3 or (outline is not None and outline.axes == "any"):
        raise ParameterError(
            f"the samples are {shape_text(preparation.input_shape)}, which is not an image: leave out views"
        )


def learning_split(splits: Iterable[str]) -> str:
    """The split that a network learns from: 'train', or else the first."""
    names = list(splits)
    return "train" if "train" in names else names[0]
