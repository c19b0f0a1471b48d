"""Counts what a protected delivery takes from the budget of each image, before anything leaves."""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from secrets import token_hex
from typing import Any

import numpy.typing as npt

from mole.errors import DeliveryError
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.plan import Plan
from mole.provider.protect import Protect
from mole.provider.replacing import lies_at
from mole.provider.spending import Spending
from mole.sources.source import BadSampleError, Source, Split
from mole.storage.locations import absolute
from mole.storage.stores import Store
from mole.url_secrets import without_secrets

Address = str | os.PathLike[str]
SAMPLES_AT_ONCE = 1024


class Counting:
    """The budget side of one protected delivery.

    Attributes:
        plan: the plan, with the name that the delivery was begun under, or a new one.
    """

    def __init__(
        self,
        protect: Protect,
        plan: Plan,
        source: Source,
        key: MorphKey,
        out: str | os.PathLike[str] | Store,
    ) -> None:
        self._protect, self._source, self._key = protect, source, key
        self._spending = Spending.beside(Ledger(key.fingerprint, key.path))
        place = absolute(out) if isinstance(out, str | os.PathLike) else out.label
        draft = key.mac("draft", f"{plan.delivery_id} {without_secrets(str(place))}")
        self._spending.rename(f"{plan.delivery_id} {place}", draft)  # as it was before version 0.9
        name = self._spending.draft(draft)
        if name is None or not lies_at(out, self._named(plan, name), key):  # or it was replaced since
            name = token_hex(16)
            self._spending.begin(draft, name)
        self.plan = self._named(plan, name)

    def _named(self, plan: Plan, name: str) -> Plan:
        return replace(plan, source=self._source, key=self._key, draft_name=name)

    def check_budget(self) -> float:
        """The most bits that any of its images will have given away, in all deliveries under the key.

        Raises:
            DeliveryError: if an image would exceed its budget.
        """
        return self._spending.most_after(self.plan.delivery_id, self._images, self._protect.budget)

    def spend(self) -> None:
        """Count it, once: what is begun counts as done.

        Raises:
            DeliveryError: if an image would exceed its budget: others may have counted in the meantime.
        """
        self._spending.spend(self.plan.delivery_id, self._images, self._protect.budget)

    def keep_budget(self) -> None:
        """Hold later deliveries to its budget, too."""
        self._spending.keep_budget(self._protect.budget)

    @cached_property
    def _images(self) -> dict[str, float]:
        """Bits that each image gives away, by its digest."""
        terms = self.plan.protection
        assert terms is not None  # noqa: S101  (only protected deliveries are counted)
        images: dict[str, float] = {}
        for name, split in self._source.splits.items():
            bits = terms.certificates[name].bits * self.plan.views_of(name)
            for digest in image_digests(split, self._key):
                images[digest] = images.get(digest, 0.0) + bits
        return images

    def forget_if_nothing_was_made(self, store: Store) -> None:
        """Take it back, where not a row has left."""
        with suppress(DeliveryError, OSError):
            if not store.names():
                self._spending.forget(self.plan.delivery_id)


def image_digests(split: Split, key: MorphKey) -> Iterator[str]:
    """What names each sample of a split that can be read; only the holder of the key can compute it."""

    def digest(index: int) -> str | None:
        try:
            values = split.read(index).values
        except BadSampleError:
            return None  # it does not leave, and whoever asked for it is told
        return image_digest(values, key)

    numbers = iter(range(len(split)))
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="digest") as pool:
        while some := list(islice(numbers, SAMPLES_AT_ONCE)):
            yield from filter(None, pool.map(digest, some))


def image_digest(values: npt.NDArray[Any], key: MorphKey) -> str:
    """What names a sample, from its numbers as they are stored."""
    content = hashlib.sha256(values.tobytes()).hexdigest()
    return key.mac("protected-image", f"{values.dtype} {values.shape} {content}")
