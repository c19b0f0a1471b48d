"""Which split of a delivery is for what: to learn from, to watch meanwhile, to be scored on at the end.

What a network is scored on at the end must not have been used for any choice before: a split called 'test'
is never looked at while it learns.
"""

from typing import NamedTuple

from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.exchange.split_roles import VALIDATION, first_called
from mole.torch.dataset import MorphedDataset


class Splits(NamedTuple):
    """The splits of a delivery that has labels.

    Attributes:
        learning: what to learn from: 'train', or else the first.
        watched: what to score on after each epoch: the one that is called 'val' or 'validation'.
        others: what to score on once, at the end.
    """

    learning: MorphedDataset
    watched: MorphedDataset | None
    others: tuple[MorphedDataset, ...]

    @property
    def classes(self) -> int:
        """How many classes they have together."""
        every = (self.learning, self.watched, *self.others)
        return max(split.class_count for split in every if split is not None)


def splits_of(delivery: Delivery) -> Splits:
    """What to learn from and what to score on; a split without rows or labels is neither.

    Raises:
        DeliveryError: if there are no labels to learn from, or no augmented layer to learn with.
    """
    if not delivery.has_layer:
        raise no_layer(delivery)
    learning = MorphedDataset(delivery, delivery.main_split)
    if learning.labels is None:
        raise DeliveryError(f"{delivery.label} has no labels to learn from: ask for a delivery with labels")
    names = [name for name, facts in delivery.manifest.splits.items() if facts.rows]
    rest = [MorphedDataset(delivery, name) for name in names if name != learning.split]
    scored = [split for split in rest if split.labels is not None]
    name = first_called([split.split for split in scored], VALIDATION)
    watched = next((split for split in scored if split.split == name), None)
    return Splits(learning, watched, tuple(split for split in scored if split is not watched))


def no_layer(delivery: Delivery) -> DeliveryError:
    """What to say of data that came for predictions, where somebody wants to learn from it."""
    return DeliveryError(
        f"{delivery.label} came without an augmented layer, for predictions: train on the delivery with it"
    )
