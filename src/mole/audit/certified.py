"""The certificate of a delivery for a page: numbers for each split, and what they do not say, in words."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from mole.errors import DeliveryError, MissingExtraError
from mole.exchange.delivery import Delivery
from mole.exchange.noise_check import NoiseCheck
from mole.exchange.protection_words import counted_bits, label_bits
from mole.foreign_text import shown
from mole.protection.certificate import Certificate
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.spending import GivenAway, Spending
from mole.quantities import counted, joined

DELTA = 1e-5
FEW, MANY = 1_000, 1_000_000  # candidates
NO_SPENDING = (
    "Several deliveries of one image add up as well. What was delivered under the key before is not known "
    "here: {}."
)


@dataclass(frozen=True)
class Certified:
    """The bound of the rows of one split.

    Attributes:
        split, rows, features: which, how many, and how many numbers each has.
        clip, sigma: what it follows from.
        bits, mu: what it says on average over images, and how far any two images are apart.
        guesses: how many times as often a guess about an image is right with its row, at most; None where
            that is not bounded.
        epsilon, delta: of differential privacy; epsilon is None without the library for it.
        of_few, of_many: how often the right one of 1,000 and of a million candidates is picked at most.
        noise: what was seen of the noise, in words.
        is_noisy: whether nothing speaks against it.
        views: how many rows each image has.
    """

    split: str
    rows: int
    features: int
    clip: float
    sigma: float
    bits: float
    guesses: float | None
    mu: float
    epsilon: float | None
    delta: float
    of_few: float
    of_many: float
    noise: str
    is_noisy: bool
    views: int = 1

    @property
    def image_bits(self) -> float:
        """Bits that all rows of an image tell at most."""
        return self.views * self.bits


def certified(delivery: Delivery) -> tuple[Certified, ...]:
    """The certificate of each split, and whether its noise shows in all of its rows; without a key."""
    protection = delivery.manifest.protection
    certificates = {} if protection is None else protection.certificates
    return tuple(_certified(delivery, split, one) for split, one in certificates.items())


def _certified(delivery: Delivery, split: str, one: Certificate) -> Certified:
    check = NoiseCheck(one)
    for shard in delivery.shards(split):
        check.see(delivery.encoding.decode(shard.values))
    problem = check.problem()
    delta = DELTA if one.limit is None else 0.0
    return Certified(
        split, delivery.split(split).rows, one.features, one.clip, one.sigma, one.bits,
        None if one.limit is None else 2**one.maximal_leakage, one.mu, _epsilon(one, delta), delta,
        one.identification(FEW), one.identification(MANY),
        noise=problem or f"the rows agree with noise of {one.sigma:.3g} in each number",
        is_noisy=problem is None, views=delivery.split(split).views,
    )  # fmt: skip


def _epsilon(one: Certificate, delta: float) -> float | None:
    try:
        return one.epsilon(delta)
    except MissingExtraError:
        return None


def labelled_splits(delivery: Delivery) -> list[str]:
    """The splits whose rows have labels."""
    return [name for name in delivery.manifest.splits if delivery.labels(name) is not None]


def unsaid(delivery: Delivery, key: MorphKey | None) -> Iterator[str]:
    """What the certificate of a delivery does not say: a sentence or two for each."""
    manifest = delivery.manifest
    is_limited = manifest.protection is not None and manifest.protection.is_limited
    yield (
        "Bits are an average over images: the row of one image may tell more than that, and of another "
        "less. What holds for every single image is "
        f"{'the bound on guesses, and epsilon' if is_limited else 'mu, and epsilon with it'}."
    )
    yield (
        "Picking the right one of many candidates assumes that all are equally likely beforehand. Whoever "
        "knows more already starts from more."
    )
    if labelled := labelled_splits(delivery):
        yield (
            f"Labels leave besides, in {joined([shown(name) for name in labelled])}{label_bits(manifest)}. "
            "They narrow candidates down to one class before anybody looks at a row: what holds of many "
            "candidates holds of those that are left."
        )
    if manifest.columns:
        yield f"So do these columns, unchanged: {joined([shown(name) for name in manifest.columns])}."
    yield f"How many images there are leaves, too: {counted(manifest.rows, 'row')}."
    yield (
        "It is about one row. Several images of one person add up: n of them tell n times as many bits, "
        f"with {'n' if is_limited else 'sqrt(n)'} times as large {'an epsilon' if is_limited else 'a mu'}."
    )
    views = max(facts.views for facts in manifest.splits.values())
    if views > 1:
        larger = (
            f"{views} times as large an epsilon" if is_limited else f"{views**0.5:.3g} times as large a mu"
        )
        yield f"Here each image has {views} rows: {views} times as many bits, and {larger}."
    yield _other_deliveries(delivery, key)


def _other_deliveries(delivery: Delivery, key: MorphKey | None) -> str:
    """What the images have given away in all deliveries under the key, as far as that was counted."""
    if key is None:
        return NO_SPENDING.format("its key was not given")
    try:
        found = _given_away(delivery, key)
    except DeliveryError as error:
        return NO_SPENDING.format(error.message)
    if found is None:
        return NO_SPENDING.format("nothing of this delivery was counted on this machine")
    times = [counted(found.deliveries, "delivery", "deliveries")]
    times += [counted(found.requests, "request")] if found.requests else []
    return (
        f"Several deliveries of one image add up as well: in {joined(times)} under this key so far, no "
        f"image in this delivery has given away more than {counted_bits(found.bits)}."
    )


def bits_so_far(delivery: Delivery, key: MorphKey | None) -> float | None:
    """Bits that no image has exceeded in all that left under the key; None where nobody counted them."""
    with suppress(DeliveryError):  # `unsaid` says what the matter is
        found = None if key is None else _given_away(delivery, key)
        return None if found is None else found.bits
    return None


def _given_away(delivery: Delivery, key: MorphKey) -> GivenAway | None:
    ledger = Ledger(key.fingerprint, key.path)
    return Spending.kept(ledger).given_away(delivery.manifest.delivery_id)
