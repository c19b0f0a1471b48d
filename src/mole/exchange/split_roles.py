"""What the splits of a delivery are for, by their names: to watch a training, to score a network.

A split for tests is never looked at while a network learns. Data that came for predictions was not split:
its rows are requests, whatever the name that the files have for them.
"""

from collections.abc import Iterable

from mole.errors import ParameterError
from mole.exchange.delivery import Delivery

TEST = ("test", "testing")
VALIDATION = ("val", "validation", "valid", "dev")
UNSPLIT, REQUESTS = "train", "requests"


def first_called(names: Iterable[str], wanted: tuple[str, ...]) -> str | None:
    """The first name that is one of those wanted, in capital or small letters; None if there is none.

    >>> first_called(["train", "Test", "val"], VALIDATION), first_called(["train"], TEST)
    ('val', None)
    """
    return next((name for name in names if name.lower() in wanted), None)


def split_to_score(delivery: Delivery) -> str:
    """The split that tells how good a network is: for tests, else for validation, else the only one.

    Raises:
        ParameterError: if there are several others to choose from.
    """
    names = [*delivery.manifest.splits]
    return first_called(names, TEST) or first_called(names, VALIDATION) or only_split(delivery)


def only_split(delivery: Delivery) -> str:
    """The split of a delivery that has one; an error that lists them otherwise."""
    names = tuple(delivery.manifest.splits)
    if len(names) != 1:
        raise ParameterError(f"{delivery.label} has {len(names)} splits", advice={"split": names})
    return names[0]


def rows_by_split(delivery: Delivery) -> dict[str, int]:
    """The rows of each split, for a person: of data for predictions that has no other name, `requests`."""
    rows = {name: facts.rows for name, facts in delivery.manifest.splits.items()}
    unsplit = not delivery.has_layer and list(rows) == [UNSPLIT]
    return {REQUESTS: rows[UNSPLIT]} if unsplit else rows


def views_by_split(delivery: Delivery) -> dict[str, dict[str, int]]:
    """How many views of each sample a split has, for a person; nothing where every row is a sample."""
    views = {name: facts.views for name, facts in delivery.manifest.splits.items() if facts.views > 1}
    return {"views": views} if views else {}
