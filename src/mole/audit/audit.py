"""The audit itself: attack, score, judge, and gather everything into one report."""

from collections.abc import Sequence

from mole._version import __version__
from mole.attacks import ATTACKS
from mole.attacks.attack import Attack
from mole.audit.costs import costs_of
from mole.audit.judge import verdicts_of
from mole.audit.published import published_bounds
from mole.audit.report import Plot, Report
from mole.audit.run import run_attacks
from mole.audit.subject import FEWEST_SCORED, Subject
from mole.progress import Progress, no_progress

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
