"""Which row of a delivery is which sample: told by the key, and by nothing in the delivery.

Row r of a split is number `order[r]`, and its id is `ids[r]`. Numbers count the samples of the source, or
their views where each has several (`mole.provider.image_views`). Both follow from the key, the delivery and
the size of the split, so they are never stored. Two deliveries under one key share neither: somebody who
has both cannot tell that two rows are the same sample.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.provider.keys import MorphKey


class RowNumbers:
    """The rows of one split of one delivery, in their secret order.

    >>> key = MorphKey.generate((1, 4, 4), insecure_seed=bytes(32))
    >>> rows = RowNumbers(key, "some delivery", "train", 3)
    >>> rows.order, rows.ids[0]
    (array([2, 0, 1]), 'd927894d582ff303')
    >>> rows.samples_of(rows.ids[:2]), rows.missing(rows.ids[:2])
    ([2, 0], [1])
    """

    def __init__(self, key: MorphKey, delivery_id: str, split: str, count: int, views: int = 1) -> None:
        """Rows of a split; `count` is how many there are, with `views` of each sample."""
        self._key = key
        self._which = f"{delivery_id}/{split}/{count}"
        self._count, self.views = count, views

    @classmethod
    def of(cls, delivery: Delivery, key: MorphKey, split: str) -> "RowNumbers":
        """Those of a split of a delivery that was made with this key."""
        facts = delivery.split(split)
        return cls(key, delivery.manifest.delivery_id, split, facts.most_rows, facts.views)

    @cached_property
    def order(self) -> npt.NDArray[np.intp]:
        """The number of each row: a sample of the source, or a view of one."""
        return self._key.stream(f"row-order/{self._which}").order(self._count)

    @cached_property
    def ids(self) -> list[str]:
        """The name of each row: 16 hexadecimal digits that say nothing about the sample."""
        words = self._key.stream(f"row-ids/{self._which}").take(self._count)
        return [f"{word:016x}" for word in words.tolist()]

    def numbers_of(self, ids: Sequence[str]) -> list[int]:
        """The number of each row id: its sample times `views`, and which view of it.

        Raises:
            DeliveryError: if a row has an id that this key did not give it.
        """
        try:
            return [self._numbers[row_id] for row_id in ids]
        except KeyError:
            raise DeliveryError("a row of the delivery was not made with this key") from None

    def samples_of(self, ids: Sequence[str]) -> list[int]:
        """The sample behind each row id, in the same way."""
        return [number // self.views for number in self.numbers_of(ids)]

    def first_views(self, ids: Sequence[str]) -> list[int]:
        """The places of those rows that are samples themselves, and no other views of them."""
        return [place for place, number in enumerate(self.numbers_of(ids)) if number % self.views == 0]

    def missing(self, ids: Iterable[str]) -> list[int]:
        """The samples of which a row is not among these, in the order of the source."""
        delivered = set(ids)
        pairs = zip(self.ids, self.order.tolist(), strict=True)
        return sorted({number // self.views for row_id, number in pairs if row_id not in delivered})

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return dict(zip(self.ids, self.order.tolist(), strict=True))
