"""Protected requests: front, clip, fresh noise, and what each image gives away, counted before it leaves.

Noise is drawn once for each question. A request that is sent again carries the same bytes, so that it tells
nothing more; an image that is asked about again tells as much again.
"""

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.protection.front_file import Front
from mole.protection.terms import Protection
from mole.provider.counted_source import image_digest
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.protect import Protect, check_core
from mole.provider.protector import Protector
from mole.provider.spending import REQUEST, Spending
from mole.quantities import counted
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array

SPLIT = "requests"


class ProtectedRequests:
    """What makes protected rows of images, and counts them.

    Attributes:
        front: the developer's, checked.
        clip: the largest length of an image's features.
        bits: what one row tells at most.
    """

    def __init__(
        self, front: Front, terms: Protection, key: MorphKey, spending: Spending, budget: float | None
    ) -> None:
        certificate = terms.certificates[SPLIT]
        self.front, self.clip, self.bits = front, certificate.clip, certificate.bits
        self._key, self._spending, self._budget = key, spending, budget
        self._protector = Protector(front, terms)
        self._is_kept = False

    @classmethod
    def of(
        cls, protect: Protect, key: MorphKey, layer: FirstLayer | None, ledger: Ledger
    ) -> "ProtectedRequests":
        """Those that a provider asks for.

        Raises:
            ParameterError: if front, layer and key do not go together.
        """
        if layer is None:
            raise ParameterError(
                "protected requests need the first layer of the network on features", advice={"layer": None}
            )
        check_core(key)
        front = protect.front_for(layer, "local")
        terms = protect.terms(front, [SPLIT])
        return cls(front, terms, key, Spending.beside(ledger), protect.budget)

    def rows(self, plain: Array, originals: Sequence[npt.NDArray[Any] | str]) -> Array:
        """Protected rows of images, (n, *input_shape) to (n, *features); counted from here on.

        Args:
            plain: images as the front takes them.
            originals: what each was made from, by which it is counted, or the digest of that.

        Raises:
            ShapeError: if there is not one for each image, or they do not fit the front.
            DeliveryError: if an image would exceed its budget.
        """
        if len(originals) != len(plain):
            raise ShapeError(
                f"{counted(len(plain), 'image')} and {counted(len(originals), 'original')} were given: "
                "each image is counted by its own"
            )
        if plain.shape[1:] != self.front.input_shape:  # known now, and not when it was counted
            raise ShapeError(f"images of shape {plain.shape} do not fit a front of {self.front}")
        given: dict[str, float] = {}
        for one in originals:
            digest = one if isinstance(one, str) else image_digest(one, self._key)
            given[digest] = given.get(digest, 0.0) + self.bits
        keep = not self._is_kept  # once: it may be set anew while requests are made
        self._spending.spend(REQUEST + secrets.token_hex(16), given, self._budget, keep=keep)
        self._is_kept = True
        return self._protector.rows(plain, SPLIT)

    def close(self) -> None:
        """End the front's process."""
        self._protector.close()


def as_stored(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An image, channels first, as image files are read: channels last, and none for grey.

    So that an image counts as the same one, whether it is asked about from a file or from an array.

    >>> as_stored(np.zeros((3, 4, 5))).shape, as_stored(np.zeros((1, 4, 5))).shape
    ((4, 5, 3), (4, 5))
    """
    if image.ndim != 3 or image.shape[0] not in (1, 3, 4):
        return np.ascontiguousarray(image)
    return np.ascontiguousarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))
