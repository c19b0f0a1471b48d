"""Trying attacks one after the other: within a budget, and none at the cost of the others."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mole.attacks.tools.attack import Attack, Finding
from mole.attacks.tools.views import MissingInputError, NotApplicableError
from mole.audit.levels import Status
from mole.audit.report import AttackReport
from mole.errors import MoleError
from mole.progress import Progress


def try_all(
    attacks: Sequence[Attack],
    run: Callable[[Attack, np.random.Generator], Finding],
    compared: Callable[[Attack, Finding, float], AttackReport],
    *,
    budget: float,
    seed: int,
    progress: Progress,
) -> Iterator[AttackReport]:
    """Every attack for which there is time left; one that has begun is not cut off.

    Args:
        attacks: in this order.
        run: gives an attack what its attacker has.
        compared: puts what was found, within so many seconds, beside the truth.
        budget: seconds after which no further attack begins.
        seed: what the attacks' random numbers follow from.
        progress: called with the attacks done and the attacks to do.
    """
    start = time.monotonic()
    for index, attack in enumerate(attacks):
        progress(index, len(attacks))
        if time.monotonic() - start > budget:
            words = f"The budget of {budget:.0f} seconds was used up before: give a larger budget."
            yield AttackReport(attack, Status.NOT_TRIED, words)
            continue
        began = time.perf_counter()
        try:
            # A generator of its own: what one attack draws does not change the next.
            finding = run(attack, np.random.default_rng([seed, index]))
        except MissingInputError as reason:
            yield AttackReport(attack, Status.NOT_TRIED, reason.sentence)
        except NotApplicableError as reason:
            yield AttackReport(attack, Status.NOT_APPLICABLE, reason.sentence)
        except MoleError as reason:
            yield AttackReport(attack, Status.NOT_TRIED, reason.sentence)
        except Exception as error:  # one attack that fails must not cost the whole report
            yield AttackReport(attack, Status.GAVE_UP, f"It gave up: {type(error).__name__}.")
        else:
            yield compared(attack, finding, time.perf_counter() - began)
    progress(len(attacks), len(attacks))
