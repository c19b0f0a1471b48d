"""Runs attacks on a subject, one by one, within a budget of time, and has each scored."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from mole._version import __version__
from mole.analysis import LayerSizes, Setting, figures_of
from mole.attacks import ATTACKS
from mole.attacks.tools.attack import Attack, Finding
from mole.attacks.tools.views import DeliveryView, MissingInputError, NotApplicableError
from mole.audit.costs import costs_of
from mole.audit.pictures import can_be_shown, picture, stretched
from mole.audit.report import (
    GAVE_UP,
    NOT_APPLICABLE,
    NOT_COMPARED,
    NOT_TRIED,
    AttackReport,
    Picture,
    Plot,
    Report,
)
from mole.audit.scoring import Score, Truth, aligned, score
from mole.audit.subject import FEWEST_SCORED, Subject
from mole.audit.verdicts import status_of, verdicts_of
from mole.errors import MoleError
from mole.progress import Progress, no_progress
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array

SHOWN = 3  # images in pictures


def run_attacks(
    subject: Subject,
    attacks: Sequence[Attack],
    *,
    budget: float,
    seed: int,
    published: Mapping[str, str],
    progress: Progress,
) -> tuple[AttackReport, ...]:
    """Every attack that fits in the budget, in seconds; one that has begun is not cut off."""
    start = time.monotonic()
    reports = []
    for index, attack in enumerate(attacks):
        progress(index, len(attacks))
        bound = published.get(attack.name)
        if time.monotonic() - start > budget:
            words = f"The budget of {budget:.0f} seconds was used up before: give a larger --budget."
            reports.append(_not_tried(attack, NOT_TRIED, words, bound))
        else:
            # A generator of its own: what one attack draws does not change the next.
            reports.append(_run(subject, attack, np.random.default_rng([seed, index]), bound))
    progress(len(attacks), len(attacks))
    return tuple(reports)


def _run(subject: Subject, attack: Attack, rng: np.random.Generator, published: str | None) -> AttackReport:
    start = time.perf_counter()
    try:
        finding = attack.run(subject.view(attack.view), rng)
    except MissingInputError as reason:
        return _not_tried(attack, NOT_TRIED, _sentence(reason), published)
    except NotApplicableError as reason:
        return _not_tried(attack, NOT_APPLICABLE, _sentence(reason), published)
    except MoleError as reason:
        return _not_tried(attack, NOT_TRIED, _sentence(reason), published)
    except Exception as error:  # one attack that fails must not cost the whole report
        return _not_tried(attack, GAVE_UP, f"It gave up: {type(error).__name__}.", published)
    seconds = time.perf_counter() - start
    return _scored(subject, attack, finding, seconds, published)


def _scored(
    subject: Subject, attack: Attack, finding: Finding, seconds: float, published: str | None
) -> AttackReport:
    truth = subject.truth
    enough = truth is not None and min(len(truth.plain), subject.scored) >= FEWEST_SCORED
    measured = score(_first(finding, subject.scored), truth) if truth is not None and enough else None
    return AttackReport(
        name=attack.name, title=attack.title, attacker=attack.attacker,
        source=attack.source, advice=attack.advice,
        status=NOT_COMPARED if measured is None else status_of(measured),
        words=finding.words if enough else f"{finding.words} There was no truth to compare it with.",
        published=published,
        seconds=round(seconds, 2),
        score={} if measured is None else _figures(measured),
        facts=dict(finding.facts),
        pictures=_pictures(subject, attack, finding),
    )  # fmt: skip


def _not_tried(attack: Attack, status: str, words: str, published: str | None) -> AttackReport:
    return AttackReport(
        name=attack.name, title=attack.title, attacker=attack.attacker,
        source=attack.source, advice=attack.advice, status=status, words=words,
        published=published, seconds=None, score={}, facts={},
    )  # fmt: skip


def _sentence(error: Exception) -> str:
    text = str(error).rstrip(".")
    return text[:1].upper() + text[1:] + "."


def _figures(measured: Score) -> dict[str, Any]:
    return {name: value for name, value in asdict(measured).items() if value is not None}


def _first(finding: Finding, count: int) -> Finding:
    """The same finding, about the rows that are compared only."""
    return replace(
        finding,
        images=None if finding.images is None else finding.images[:count],
        maps=None if finding.maps is None else finding.maps[:count],
        distances=None if finding.distances is None else finding.distances[:count, :count],
    )


def _pictures(subject: Subject, attack: Attack, finding: Finding) -> tuple[tuple[Picture, ...], ...]:
    """A row for each of the first images: original, morphed, what the attacker sees, what it rebuilds."""
    if subject.truth is None or not can_be_shown(subject.input_shape):
        return ()
    if finding.images is None and finding.maps is None:
        return ()
    truth, count = subject.truth, min(SHOWN, subject.scored, len(subject.truth.plain))
    rebuilt = _rebuilt(_first(finding, subject.scored), truth, count)
    maps = _maps(subject, attack, finding, count)
    rows = []
    for index in range(count):
        row = [
            picture(f"Original {index + 1}", truth.pixels(truth.plain[index : index + 1])[0]),
            picture(f"Morphed {index + 1}", stretched(subject.morphed[index])),
        ]
        if maps is not None:
            row.append(picture(f"What the attacker sees of {index + 1}", stretched(_best(maps[index]))))
        if rebuilt is not None:
            row.append(picture(f"What the attacker rebuilds of {index + 1}", rebuilt[index]))
        rows.append(tuple(row))
    return tuple(rows)


def _maps(subject: Subject, attack: Attack, finding: Finding, count: int) -> Array | None:
    """Pictures that the attacker has anyway: the attack's own, or features for who has the layer."""
    maps = finding.maps
    if maps is None and subject.augmented is not None and issubclass(attack.view, DeliveryView):
        maps = subject.augmented.features(subject.morphed[:count])
    return maps if maps is not None and maps.ndim == 4 else None


def _rebuilt(finding: Finding, truth: Truth, count: int) -> Array | None:
    if finding.images is None:
        return None
    return truth.pixels(aligned(finding, truth)[:count])


def _best(maps: Array) -> Array:
    """The strongest of several maps, (how many, height, width), as a grey picture."""
    strongest = int(maps.reshape(len(maps), -1).std(axis=1).argmax())
    return maps[strongest : strongest + 1]


BUDGET = 600.0
TITLES = {True: "What this delivery gives away", False: "What this setting would give away"}


def audit(
    subject: Subject,
    *,
    attacks: Sequence[Attack] = ATTACKS,
    plots: tuple[Plot, ...] = (),
    budget: float = BUDGET,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Report:
    """Attack a subject with everything there is, and say what came of it.

    Args:
        subject: a delivery or a setting, with the truth beside it.
        attacks: which ones, in this order.
        plots: the paper's figures, if they are wanted.
        budget: seconds after which no further attack begins.
        seed: of what attacks draw at random.
        progress: called with the attacks done and the attacks to do.
    """
    published = {} if subject.layer is None else published_bounds(subject.layer, subject.kappa)
    reports = run_attacks(
        subject, attacks, budget=budget, seed=seed, published=published, progress=progress
    )
    return Report(
        subject=subject.facts,
        warnings=(*subject.warnings, *_too_few(subject)),
        verdicts=verdicts_of(reports),
        attacks=reports,
        plots=plots,
        costs=costs_of(subject),
        version=__version__,
        title=TITLES[subject.private],
        private=subject.private,
    )


def _too_few(subject: Subject) -> tuple[str, ...]:
    if subject.scored >= FEWEST_SCORED:
        return ()
    return (
        f"There are only {len(subject.morphed)} rows: with fewer than {2 * FEWEST_SCORED} nothing that "
        "attacks found could be compared with the truth.",
    )


FIGURES = {
    "brute-force-core": "core guess",
    "channel-search": "channel order guess",
    "channel-fingerprint": "channel order guess",
    "reversing": "reversing guess",
    "known-pairs": "pairs",
}


def published_bounds(layer: FirstLayer, kappa: int) -> Mapping[str, str]:
    """The published figure by name of attack, in words; attacks that the paper does not know have none."""
    setting = Setting(layer=LayerSizes.of(layer), kappa=kappa)
    figures = {figure.name: figure for figure in figures_of(setting)}
    return {
        attack: f"{figures[name].what}: {figures[name].words('by_formula')}"
        for attack, name in FIGURES.items()
        if name in figures
    }
