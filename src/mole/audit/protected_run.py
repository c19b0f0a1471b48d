"""Attack a protected delivery: what its rows tell, beside what its certificate says that they can tell.

The receiver can undo the morphing, so every attacker here has the rows with it undone. What is measured can
only fall short of the certificate; where it does not, something is broken, and the page says so.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np

from mole._version import __version__
from mole.attacks import PROTECTED_ATTACKS
from mole.attacks.tools.attack import Attack, Finding
from mole.audit.certified import Certified, bits_so_far, certified, labelled_splits, unsaid
from mole.audit.from_delivery import DAMAGED, check_key
from mole.audit.levels import Status
from mole.audit.pictures import can_be_shown, picture
from mole.audit.protected_scoring import figures_of, score_of
from mole.audit.protected_subject import ProtectedSubject, attacked_split, protected_subject
from mole.audit.protected_verdicts import protected_headline, protected_verdicts, status_of_figures
from mole.audit.report import AttackReport, Picture, Report
from mole.audit.scoring import Truth
from mole.audit.seen_through_front import FrontOfDelivery, front_of
from mole.audit.trying import try_all
from mole.audit.verdicts import status_of
from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.delivery import Delivery
from mole.exchange.protection_words import protection_in_words, what_else
from mole.exchange.shards import SCALES
from mole.foreign_text import shown
from mole.progress import Progress
from mole.provider.keys import MorphKey
from mole.quantities import joined
from mole.scheme.first_layer import FirstLayer
from mole.sources.source import Source

PICTURED = 3  # images that are shown
TITLE = "What this protected delivery gives away"
NO_OTHER = (
    "a protected delivery is not compared with another one: what both give away together is counted under "
    "the key; leave the other out"
)
NEEDED = "attacks on a protected delivery need {}: give {} to test this"


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the auditor gives, opened; None for what it does not.

    Attributes:
        key, layer: of the delivery.
        source: what it was made from.
        public: other images of the same kind.
        front: the file of the front that it was made with.
        skip_bad: leave out public images that cannot be used.
    """

    key: MorphKey | None = None
    layer: FirstLayer | None = None
    source: Source | None = None
    public: Source | None = None
    front: str | PathLike[str] | None = None
    skip_bad: bool = False

    @property
    def missing(self) -> str | None:
        """What attacks need and was not given, in a sentence; None if nothing."""
        parts = {"its key": self.key, "its front": self.front, "the images it was made from": self.source}
        names = [name for name, part in parts.items() if part is None]
        return NEEDED.format(joined(names), "it" if len(names) == 1 else "them") if names else None


def audit_protected(
    delivery: Delivery,
    given: Given,
    doubts: Sequence[str],
    *,
    budget: float,
    seed: int,
    progress: Progress,
) -> Report:
    """Attack a protected delivery, or without its front say what its certificate says.

    Raises:
        DeliveryError: if the key, or the layer, is another delivery's.
        FileError: if the front is another delivery's.
    """
    check_key(delivery, given.key)
    _check_layer(delivery, given.layer)
    damaged = delivery.damaged([*delivery.shard_names(), SCALES])
    doubts = [*doubts, *map(DAMAGED.format, damaged)]
    front = None if given.front is None else front_of(delivery.manifest, Path(given.front))
    certificates = certified(delivery)
    rng, found = np.random.default_rng([seed, len(PROTECTED_ATTACKS)]), given.missing
    subject: ProtectedSubject | str | None = found
    if found is None and front is not None and given.key is not None and given.source is not None:
        protection = delivery.manifest.protection
        assert protection is not None  # noqa: S101  (the delivery is protected)
        most = protection.certificates[attacked_split(delivery)].clip
        with FrontOfDelivery(front, delivery.manifest, most) as looking:
            subject = protected_subject(
                delivery, given.key, looking, source=given.source, public=given.public, rng=rng,
                skip_bad=given.skip_bad,
            )  # fmt: skip
    if isinstance(subject, ProtectedSubject):
        doubts += subject.warnings
    elif found is None:
        doubts.append(str(subject))
    for doubt in doubts:
        warnings.warn(doubt, MoleWarning, stacklevel=4)  # past `audit` and `mole.audit(...)`
    if isinstance(subject, ProtectedSubject):
        view = subject.view
        tried = try_all(
            PROTECTED_ATTACKS, lambda attack, rng: attack.run(view, rng), partial(_compared, subject),
            budget=budget, seed=seed, progress=progress,
        )  # fmt: skip
        attacks = tuple(tried)
        certificates = tuple(_measured(one, subject, attacked_split(delivery)) for one in certificates)
    else:
        attacks = _untried(str(subject))
    verdicts = protected_verdicts(attacks, certificates)
    is_labelled = bool(labelled_splits(delivery))
    return Report(
        subject=_facts(delivery, subject),
        headline=protected_headline(
            verdicts,
            certificates,
            bits_so_far(delivery, given.key),
            besides=what_else(delivery.manifest, is_labelled=is_labelled),
        ),
        date=datetime.now(UTC).date().isoformat(),
        warnings=tuple(doubts),
        verdicts=verdicts,
        remarks=() if found is None else (f"{found[:1].upper()}{found[1:]}.",),
        attacks=attacks,
        version=__version__,
        title=TITLE,
        certificates=certificates,
        promises=tuple(protection_in_words(delivery.manifest, is_labelled=is_labelled)),
        unsaid=tuple(unsaid(delivery, given.key)),
    )


def _measured(certified: Certified, subject: ProtectedSubject, split: str) -> Certified:
    """The same certificate, with what the noise of rows is where their features are known."""
    if certified.split != split:
        return certified
    truth = subject.truth
    words = f"measured {truth.spread:.3g} in each number, where it has to be {certified.sigma:.3g}"
    if truth.noise is not None:
        return replace(certified, noise=f"{words}; less their features, {truth.noise}", is_noisy=False)
    return replace(certified, noise=words) if certified.is_noisy else certified


def _check_layer(delivery: Delivery, layer: FirstLayer | None) -> None:
    """Refuse a first layer that the delivery was not made for."""
    ours = delivery.manifest.layer_fingerprint
    if layer is not None and layer.fingerprint != ours:
        raise DeliveryError(
            f"{delivery.label} was made for first layer {shown(ours)}, and the one given is "
            f"{layer.fingerprint}: give the layer that it was made for"
        )


def refuse_other(other: object) -> None:
    """Refuse another delivery beside a protected one.

    Raises:
        ParameterError: if there is one.
    """
    if other is not None:
        raise ParameterError(NO_OTHER)


def _facts(delivery: Delivery, subject: ProtectedSubject | str | None) -> dict[str, object]:
    manifest = delivery.manifest
    protection = manifest.protection
    told: dict[str, object] = {"audited": "a protected delivery", "rows": manifest.rows}
    if isinstance(subject, ProtectedSubject):
        told |= subject.facts
    return told | {
        "numbers in a row": max(one.features for one in protection.certificates.values())
        if protection
        else 0,
        "stored as": manifest.dtype,
        "SHA-256 of the front": protection.front if protection else None,
        "key fingerprint": shown(manifest.key_fingerprint),
        "layer fingerprint": shown(manifest.layer_fingerprint),
    }


def _untried(reason: str) -> tuple[AttackReport, ...]:
    """All attacks, where there is nothing that they could be tried on."""
    words = f"{reason[:1].upper()}{reason[1:].rstrip('.')}."
    return tuple(AttackReport(attack, Status.NOT_TRIED, words) for attack in PROTECTED_ATTACKS)


def _compared(subject: ProtectedSubject, attack: Attack, finding: Finding, seconds: float) -> AttackReport:
    """What was found beside the truth and what the certificate allows."""
    figures, found = figures_of(finding, subject), score_of(finding, subject.truth)
    is_rebuilt = found is not None and status_of(found) == Status.SUCCEEDED
    report = AttackReport(
        attack, status_of_figures(figures, is_rebuilt=is_rebuilt), finding.words, seconds=round(seconds, 2),
        score=found, facts=dict(finding.facts), figures=figures, pictures=_pictures(subject, finding),
    )  # fmt: skip
    is_advised = report.status in (Status.SUCCEEDED, Status.PARTLY)
    return replace(report, advice=attack.advice) if is_advised else report


def _pictures(subject: ProtectedSubject, finding: Finding) -> tuple[tuple[Picture, ...], ...]:
    """A row for each of the first images: original, what was rebuilt, the mean of public images."""
    truth = subject.truth
    if finding.images is None or truth.mean is None or not can_be_shown(truth.images.shape[1:]):
        return ()
    look = Truth(truth.images, truth.normalisation)
    columns = (
        ("Original", look.pixels(truth.images[:PICTURED])),
        ("What the attacker rebuilds of", look.pixels(finding.images[:PICTURED])),
        ("The mean of public images, beside", look.pixels(np.stack([truth.mean] * PICTURED))),
    )
    return tuple(
        tuple(picture(f"{caption} {index + 1}", pixels[index]) for caption, pixels in columns)
        for index in range(min(PICTURED, len(finding.images)))
    )
