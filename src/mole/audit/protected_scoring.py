"""The scorer of attacks on protected rows: every figure beside chance and beside the certificate."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import Finding
from mole.audit.bounded import Bounded
from mole.audit.intervals import FALSE_ALARMS, Measurement, area_between, detected, share_of
from mole.audit.protected_subject import ProtectedSubject, ProtectedTruth
from mole.audit.scoring import Score, Truth, psnr, score
from mole.protection.certificate import Certificate
from mole.protection.telling_apart import Apart
from mole.scheme.shapes import Array

NOT_WORTH_A_WORD = 0.2  # dB more than the mean image has
DEVIATIONS = 3.29  # beyond which 1 of 1,000 normal numbers lies
FEWEST = 8  # of either kind, before they are compared
PICKED = "Rows whose own image was picked out of so many candidates: the likeliest one."
BY_LABEL = (
    "The same by somebody who knows the class of each candidate, and so looks only at those with the row's "
    "label. By chance, one of these is picked; what the certificate allows is for that many."
)
BEFORE = (
    "Of two images and two rows that belong together: how often the right order looks likelier than the "
    "wrong one. Half is chance."
)
TOLD = "Which share of them is told right, with a limit that is wrong for {:.0f} % of the others."
AMONG = (
    "How often an image ranks before another whose row was taken away, by how well any row that is left "
    "fits it. Half is chance."
)
FIRST = (
    "How often a row of such an image ranks before a row of another: one with more of it than the middle "
    "one of public images. Half is chance."
)
FIDELITY = (
    "How small the error of rebuilt pixels is, on average over images, beside that of whoever draws the "
    "mean of public images each time."
)
NEAREST = "Rebuilt images that are more like their own original than like any other of so many."


def figures_of(finding: Finding, subject: ProtectedSubject) -> tuple[Bounded, ...]:
    """Everything that a finding can be measured by."""
    truth, certificate = subject.truth, subject.certificate
    one_row, all_rows = certificate.apart(), certificate.apart(subject.views)
    return (
        *_picked(finding, truth, certificate),
        *_which(finding, truth, one_row),
        *_among(finding, truth, all_rows),
        *_rebuilt(finding, truth, certificate),
        *_has(finding, truth, one_row),
    )


def score_of(finding: Finding, truth: ProtectedTruth) -> Score | None:
    """How much of images was rebuilt, as for any other delivery; None where none was tried."""
    if finding.images is None:
        return None
    return score(finding, Truth(truth.images, truth.normalisation))


def _picked(finding: Finding, truth: ProtectedTruth, certificate: Certificate) -> Iterator[Bounded]:
    for count, places in (finding.picked or {}).items():
        hits = int((places == truth.right[count]).sum())
        yield Bounded(
            f"Picked out of {count:,}", share_of(hits, len(places)), chance=1 / count,
            bound=certificate.identification(count), meaning=PICKED, candidates=count,
        )  # fmt: skip
    for count, places in (finding.picked_by_label or {}).items():
        left, hits = truth.alike[count], int((places == truth.right[count]).sum())
        if left.max() == 1:  # labels alone tell all images apart
            continue
        yield Bounded(
            f"Picked out of {count:,}, labels known", share_of(hits, len(places)),
            chance=float(np.mean(1 / left)), bound=_bound_of_lists(left, certificate), meaning=BY_LABEL,
        )  # fmt: skip


def _bound_of_lists(left: npt.NDArray[np.intp], certificate: Certificate) -> float:
    """How often the right ones of lists are picked at most, of lists as long as these.

    Two digits of each length are enough: a shorter list has a higher bound.
    """
    step = 10 ** np.maximum(0, np.floor(np.log10(left)) - 1)
    lengths, counts = np.unique((left // step * step).astype(int), return_counts=True)
    bounds = [certificate.identification(int(length)) for length in lengths]
    return float(np.average(bounds, weights=counts))


def _which(finding: Finding, truth: ProtectedTruth, apart: Apart) -> Iterator[Bounded]:
    if finding.which is None or len(finding.which) < FEWEST:
        return
    right = finding.which * np.where(truth.swapped, -1, 1)[:, np.newaxis]
    yield from _ranked(right[:, 0], right[:, 1], "Row known", BEFORE, apart)


def _among(finding: Finding, truth: ProtectedTruth, apart: Apart) -> Iterator[Bounded]:
    if finding.membership is None or min(truth.members.sum(), (~truth.members).sum()) < FEWEST:
        return
    inside, outside = (finding.membership[which] for which in (truth.members, ~truth.members))
    yield from _ranked(inside, outside, "Among all rows", AMONG, apart)


def _has(finding: Finding, truth: ProtectedTruth, apart: Apart) -> Iterator[Bounded]:
    for name, scores in (finding.has or {}).items():
        has = truth.has[name]
        told = scores[: len(has)]
        if min(has.sum(), (~has).sum()) >= FEWEST:
            measured = area_between(told[has], told[~has])
            named = f"{name.capitalize()} images first (AUC)"
            yield Bounded(named, measured, 0.5, apart.ranked(), "area", meaning=FIRST)


def _ranked(positives: Array, negatives: Array, name: str, meaning: str, apart: Apart) -> Iterator[Bounded]:
    """The area under the curve, and what is told right at few false alarms."""
    area = area_between(positives, negatives)
    yield Bounded(f"{name} (AUC)", area, 0.5, apart.ranked(), "area", meaning=meaning)
    yield Bounded(
        f"{name}, told at {100 * FALSE_ALARMS:.0f} % false alarms", detected(positives, negatives),
        chance=FALSE_ALARMS, bound=apart.detected(FALSE_ALARMS),
        meaning=TOLD.format(100 * FALSE_ALARMS),
    )  # fmt: skip


def _rebuilt(finding: Finding, truth: ProtectedTruth, certificate: Certificate) -> Iterator[Bounded]:
    if finding.images is None or truth.mean is None or len(finding.images) < FEWEST:
        return
    look = Truth(truth.images, truth.normalisation)
    originals = look.pixels(truth.images).astype(np.float64)
    mean = look.pixels(truth.mean[np.newaxis])[0].astype(np.float64)
    pairs = zip(originals, look.pixels(finding.images).astype(np.float64), strict=True)
    fidelity = np.array([psnr(*pair) for pair in pairs])
    of_mean = np.array([psnr(original, mean) for original in originals])
    gained = fidelity - of_mean
    doubt = DEVIATIONS * float(gained.std(ddof=1)) / np.sqrt(len(gained))
    middle, value = float(of_mean.mean()), float(fidelity.mean())
    yield Bounded(
        "Fidelity (PSNR)", Measurement(value, value - doubt, value + doubt), chance=middle, unit="dB",
        margin=NOT_WORTH_A_WORD, meaning=FIDELITY,
    )  # fmt: skip
    found = score_of(replace(finding, images=finding.images), truth)
    count = len(finding.images)
    hits = round((found.reidentified or 0.0) * count) if found is not None else 0
    yield Bounded(
        f"Rebuilt nearest to its own of {count:,}", share_of(hits, count), chance=1 / count,
        bound=certificate.identification(count), meaning=NEAREST,
    )  # fmt: skip
