"""Counts what a protected delivery takes from the budget of each image, before anything leaves."""

import os
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from secrets import token_hex

from mole.errors import DeliveryError
from mole.provider.counted_source import CountedSource
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.plan import Plan
from mole.provider.protect import Protect
from mole.provider.replacing import lies_at
from mole.provider.spending import Spending
from mole.sources.source import Source
from mole.storage.locations import absolute
from mole.storage.stores import Store
from mole.url_secrets import without_secrets

Address = str | os.PathLike[str]


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
        if name is None or self._is_gone(self._named(plan, name), out):
            name = self._spending.begin(draft, token_hex(16), instead_of=name)
        self.plan = self._named(plan, name)

    def _is_gone(self, plan: Plan, out: str | os.PathLike[str] | Store) -> bool:
        """Whether rows of it have left and it lies there no longer: it was removed, or replaced."""
        return self._spending.has(plan.delivery_id) and not lies_at(out, plan, self._key)

    def _named(self, plan: Plan, name: str) -> Plan:
        return replace(plan, source=self._source, key=self._key, draft_name=name)

    @property
    def source(self) -> Source:
        """The data, of which nothing can be read but what was counted.

        Raises:
            SourceError: if samples cannot be read, unless they are left out.
        """
        return self._counted.source

    def check_budget(self) -> float:
        """The most bits that any of its images will have given away, in all deliveries under the key.

        Raises:
            DeliveryError: if an image would exceed its budget.
        """
        return self._spending.most_after(self.plan.delivery_id, self._images, self._protect.budget)

    def spend(self) -> None:
        """Count it, once, and hold later deliveries to its budget: what is begun counts as done.

        Raises:
            DeliveryError: if an image would exceed its budget: others may have counted in the meantime.
        """
        self._spending.spend(self.plan.delivery_id, self._images, self._protect.budget)

    @cached_property
    def _images(self) -> dict[str, float]:
        """Bits that each image gives away, by its digest."""
        terms = self.plan.protection
        assert terms is not None  # noqa: S101  (only protected deliveries are counted)
        images: dict[str, float] = {}
        for name, digests in self._counted.digests.items():
            bits = terms.certificates[name].bits * self.plan.views_of(name)
            for digest in filter(None, digests):
                images[digest] = images.get(digest, 0.0) + bits
        return images

    @cached_property
    def _counted(self) -> CountedSource:
        return CountedSource.of(self._source, self._key, skip_bad=self.plan.skip_bad)

    def forget_if_nothing_was_made(self, store: Store) -> None:
        """Take it back, where not a row has left."""
        with suppress(DeliveryError, OSError):
            if not store.names():
                self._spending.forget(self.plan.delivery_id)
