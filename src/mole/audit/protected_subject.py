"""A protected delivery as the subject of an audit: its rows with the morphing undone, and the truth."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.protected_view import ProtectedView
from mole.audit.from_delivery import MOST_ROWS, OTHER_SOURCE
from mole.audit.from_elsewhere import COMPARED, SAME_IMAGES
from mole.audit.scoring import same_images
from mole.audit.seen_through_front import FrontOfDelivery, Seen
from mole.errors import MoleError
from mole.exchange.delivery import Delivery
from mole.exchange.noise_check import DEVIATIONS, ROUNDING, NoiseCheck
from mole.foreign_text import shown
from mole.protection.certificate import Certificate
from mole.protection.known_channel import KnownChannel
from mole.provider.image_views import with_views
from mole.provider.keys import MorphKey
from mole.provider.row_numbers import RowNumbers
from mole.scheme.filling import without_filling
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, roll, unroll
from mole.sources.source import Source

MOST_BYTES = 1 << 28  # of rows
MOST_SEEN = 2000  # rows whose images are put through the front
REBUILT = 256  # of which images are asked for
CANDIDATES = (10, 100, 1000)
ASKED = 1000  # images of either kind: among the rows, and not
SURE = math.log(1e6)  # of a likelihood ratio: by chance less than once in a million audits
TELLING = 9.0  # deviations by which rows of a source stand apart from those of another one
"""Below that many, nobody can tell whether the source given is the one. The limit is in the middle, 4.5
deviations from either: noise takes the right source across it once in 290,000 audits."""
TOO_FEW = (
    "There are too few rows to tell from them whether the source given is the one that the delivery was "
    "made from."
)
NO_TRUTH = OTHER_SOURCE.partition(", so the")[0] + ", so attacks could not be compared with the truth."


@dataclass(frozen=True, eq=False, kw_only=True)
class ProtectedTruth:
    """What attackers on protected rows want to know.

    Attributes:
        right: by the number of candidates: where in its list the image of each row stands.
        alike: by the number of candidates: how many of its list have the label of each row; nothing where
            there are no labels.
        swapped: which pairs of images stand in the other order than their rows.
        members: which of the images that are asked for have a row among those that were left.
        has: by property: which rows have images with it.
        images: of the first rows, as the front takes them, (k, *shape).
        mean: the mean of public images, (*shape), or None.
        normalisation: of both.
        spread: of the noise in each number of a row, as measured.
        noise: what the noise of rows cannot be, in words; None if nothing speaks against it.
    """

    right: dict[int, npt.NDArray[np.intp]]
    alike: dict[int, npt.NDArray[np.intp]]
    swapped: npt.NDArray[np.bool_]
    members: npt.NDArray[np.bool_]
    has: dict[str, npt.NDArray[np.bool_]]
    images: Array
    mean: Array | None
    normalisation: Normalisation | None = None
    spread: float = 0.0
    noise: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ProtectedSubject:
    """What attackers have, and what is true.

    Attributes:
        view: what every attacker has.
        truth: what they want to know.
        certificate: of the rows attacked, each by itself.
        views: rows of each image.
        facts: what to say about it.
        warnings: what was wrong with what the audit was given.
    """

    view: ProtectedView
    truth: ProtectedTruth
    certificate: Certificate
    views: int = 1
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def attacked_split(delivery: Delivery) -> str:
    """The split whose rows tell most; of equal ones that which stands for the whole."""
    protection = delivery.manifest.protection
    certificates = {} if protection is None else protection.certificates
    first = delivery.main_split
    return max([first, *certificates], key=lambda name: certificates[name].bits)


def undone(delivery: Delivery, key: MorphKey, split: str, most: int) -> tuple[Array, list[str]]:
    """The first rows of a split with the morphing undone, (n, d), and their ids."""
    morphed, ids = delivery.first_rows(split, most)
    plain = roll(key.morphing.unmorph(unroll(morphed)), delivery.manifest.input_shape)
    return unroll(without_filling(plain, delivery.manifest.network_shape)).astype(np.float64), ids


def protected_subject(
    delivery: Delivery,
    key: MorphKey,
    front: FrontOfDelivery,
    *,
    source: Source,
    public: Source | None,
    rng: np.random.Generator,
    skip_bad: bool = False,
) -> ProtectedSubject | str:
    """Put together what attackers on protected rows have; or why nothing can be compared, in a sentence."""
    protection, split = delivery.manifest.protection, attacked_split(delivery)
    assert protection is not None  # noqa: S101  (only protected deliveries come here)
    certificate = protection.certificates[split]
    most = max(1, min(MOST_ROWS, MOST_BYTES // (8 * certificate.features)))
    rows, ids = undone(delivery, key, split, most)
    seen = _delivered(delivery, key, front, source, ids[:MOST_SEEN])
    if seen is None:
        return NO_TRUTH
    noise = rows[: len(seen.features)] - seen.features
    channel = KnownChannel(certificate)
    belongs = is_own(channel.unbiased(rows[: len(seen.features)]), seen.features, channel.spread)
    if belongs is False or is_too_much(noise, certificate.sigma):
        return NO_TRUTH
    doubts = [] if belongs else [TOO_FEW]
    others, doubt = (None, None) if public is None else front.see_public(public, skip_bad=skip_bad)
    if others is not None:
        there = same_images(seen.images[:COMPARED], others.images) >= 0
        if there.any():
            doubts.append(SAME_IMAGES.format(int(there.sum()), len(there)))
    view = ProtectedView(rows=rows, channel=channel)
    samples = np.asarray(RowNumbers.of(delivery, key, split).samples_of(ids))
    labels = delivery.labels(split)
    seen = seen if labels is None else replace(seen, labels=labels[: len(seen.features)])
    view, truth = _posed(view, seen, others, samples, rng)
    truth = replace(
        truth, normalisation=front.front.normalisation, noise=_noise_problem(channel, noise, seen.features),
        spread=float(np.sqrt(np.square(noise).mean())),
    )  # fmt: skip
    facts = {
        "rows": f"{delivery.manifest.rows:,}; attacked: {len(rows):,} of split '{shown(split)}'",
        "images that were put through the front again": len(seen.features),
        "public images": 0 if others is None else len(others.features),
    }
    return ProtectedSubject(
        view=view, truth=truth, certificate=certificate, views=delivery.split(split).views, facts=facts,
        warnings=(*doubts, *(() if doubt is None else (doubt,))),
    )  # fmt: skip


def _delivered(
    delivery: Delivery, key: MorphKey, front: FrontOfDelivery, source: Source, ids: list[str]
) -> Seen | None:
    """The images behind rows, seen without noise; None if the source holds others, or cannot be read."""
    split = attacked_split(delivery)
    part = source.splits.get(split)
    if part is None or len(part) != delivery.split(split).samples:
        return None
    numbers = RowNumbers.of(delivery, key, split)
    preparation = with_views(
        front.preparation, key, delivery.manifest.delivery_id, split,
        samples=len(part), views=numbers.views,
    )  # fmt: skip
    try:
        return front.see(part, numbers.numbers_of(ids), REBUILT, preparation)
    except MoleError:
        return None


def _posed(
    view: ProtectedView,
    seen: Seen,
    others: Seen | None,
    samples: npt.NDArray[np.intp],
    rng: np.random.Generator,
) -> tuple[ProtectedView, ProtectedTruth]:
    """The questions that attackers are asked, and the answers."""
    features, count = seen.features, len(seen.features)
    lists = {size: _lists(count, size, rng) for size in CANDIDATES if size <= count}
    order = rng.permutation(count)[: count // 2 * 2].reshape(-1, 2)
    swapped = rng.random(len(order)) < 0.5
    known = np.where(swapped[:, np.newaxis], order[:, ::-1], order)
    inside = rng.random(count) < 0.5
    stay = ~np.isin(samples, samples[:count][~inside])
    asked = rng.permutation(count)[: 2 * ASKED]
    limits = {} if others is None else {name: np.median(some) for name, some in others.traits.items()}
    view = replace(
        view, candidates=features, lists=lists, row_labels=seen.labels, candidate_labels=seen.labels,
        pairs=order, pair_features=features[known],
        asked=features[asked], asked_rows=view.rows[stay],
        public=None if others is None else others.images,
        public_features=None if others is None else others.features,
        public_has={} if others is None else _above(others, limits),
        rebuilt=len(seen.images),
    )  # fmt: skip
    truth = ProtectedTruth(
        right={size: (some == np.arange(count)[:, None]).argmax(axis=1) for size, some in lists.items()},
        alike={} if seen.labels is None else {
            size: (seen.labels[some] == seen.labels[:, None]).sum(axis=1) for size, some in lists.items()
        },
        swapped=swapped, members=stay[asked],
        has=_above(seen, limits), images=seen.images,
        mean=None if others is None else others.images.mean(axis=0),
    )  # fmt: skip
    return view, truth


def _above(seen: Seen, limits: dict[str, Any]) -> dict[str, npt.NDArray[np.bool_]]:
    """Which images have more of a trait than so much, by trait."""
    return {name: seen.traits[name] > limit for name, limit in limits.items()}


def _lists(count: int, size: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """For each row its own image and others, drawn anew for each, in a mixed order: (count, size)."""
    drawn = rng.random((count, count))
    np.fill_diagonal(drawn, -1)
    return rng.permuted(np.argpartition(drawn, size - 1, axis=1)[:, :size], axis=1)


def _noise_problem(channel: KnownChannel, noise: Array, features: Array) -> str | None:
    """What the noise of rows cannot be; None if nothing speaks against it."""
    check = NoiseCheck(channel.certificate, is_bare=True)
    check.see(noise)
    if (problem := check.problem()) is None and channel.without_limit(features + noise, features) > SURE:
        return "rows fit their own images more closely than limited noise lets them"
    return problem


def is_own(rows: Array, features: Array, sigma: float) -> bool | None:
    """Whether rows are those of these features, rather than of others; None where too few can tell.

    Each row is compared with its own features and with its neighbour's, all added up.
    """
    apart = features - np.roll(features, 1, axis=0)
    total = float(np.square(apart).sum())
    if np.sqrt(total) / (2 * sigma) < TELLING:
        return None
    return float((rows * apart).sum()) > total / 4


def is_too_much(noise: Array, sigma: float) -> bool:
    """Whether rows lie further from the features than noise takes them: they belong to other images.

    What is the same in all rows is left out: noise that was drawn once for all is another matter.
    """
    chance = DEVIATIONS * np.sqrt(2 / noise.size)
    return float(noise.var(axis=0).mean()) > sigma**2 * (1 + float(chance)) * (1 + ROUNDING) ** 2
