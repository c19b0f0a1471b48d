"""Aug-Conv reversing: solve C^ac = M^-1 C P for the inverse core (paper, equations 11 to 14).

The paper counts the order of channels as one more unknown. Tried as described there, with the channels as
they come, no core fits. Once the order is found, the equations are linear and can be solved. Whoever has
the inverse core needs no features: it unmorphs every image of this key, past and future.
"""

from typing import Any

import numpy as np

from mole.analysis.security import (
    counted_equations,
    counted_unknowns,
    published_equations,
    published_unknowns,
)
from mole.attacks.tools.attack import AGAINST_THE_DEVELOPER, Attack, Attacker, Finding, Measure
from mole.attacks.tools.channel_order import FoundOrder, find_order
from mole.attacks.tools.deconvolution import CoreEquations
from mole.attacks.tools.views import DeveloperView, NotApplicableError
from mole.scheme.shapes import element_count

AT_MOST = 256
SAMPLED = 64  # rows of the core on which a solution is checked
SOLVED = 0.03  # share of the augmented layer left unexplained, up to which it is a solution


def run(view: DeveloperView, rng: np.random.Generator) -> Finding:
    """Solve with the order assumed, then with the order found."""
    equations = CoreEquations.of(view.layer, view.cut)
    as_they_come = np.arange(view.layer.channels)
    sample = np.sort(rng.choice(equations.side, min(SAMPLED, equations.side), replace=False))
    assumed = equations.residual(view, as_they_come, sample)
    found = _order(view, rng)
    order = as_they_come if found is None else found.order
    left = None if found is None else equations.residual(view, order, sample)
    inverse = equations.solve(view, order, np.arange(equations.side)).astype(np.float32)
    images = view.to_samples(view.to_blocks(view.morphed[:AT_MOST]) @ inverse)
    return Finding(
        words=_words(equations, assumed, left),
        images=images.astype(np.float32),
        unmorph=lambda blocks: blocks @ inverse,
        channel_order=None if found is None else found.order,
        facts={
            "unexplained with channels as they come": float(f"{assumed:.3g}"),
            "unexplained with the order found": None if left is None else float(f"{left:.3g}"),
            "order found by": None if found is None else found.method,
            "side of the core": equations.side,
            "of it determined": equations.rank,
            **_counts(view),
        },
    )


def _order(view: DeveloperView, rng: np.random.Generator) -> FoundOrder | None:
    try:
        return find_order(view, rng)
    except NotApplicableError:
        return None


def _words(equations: CoreEquations, assumed: float, left: float | None) -> str:
    published = (
        "With the channels as they come some matrix explains the augmented layer: the layer has too few "
        "features to tell one order from another."
        if assumed <= SOLVED
        else f"As the paper describes it, with the order unknown, it fails: {100 * assumed:.0f} % of the "
        "augmented layer stays unexplained."
    )
    if left is None:
        return f"{published} The order of channels could not be found."
    if left > SOLVED:
        return f"{published} With the order guessed for the channels {100 * left:.0f} % stays unexplained."
    share = (
        "itself"
        if equations.is_determined
        else f"in {equations.rank:,} of its {equations.side:,} dimensions"
    )
    return (
        f"{published} With the order found, the equations give the inverse core {share}: it unmorphs all "
        "images of this key, past and future."
    )


def _counts(view: DeveloperView) -> dict[str, Any]:
    """Unknowns and equations, as the paper counts them and one by one."""
    elements, outputs = element_count(view.input_shape), view.augmented.output_shape
    kernel = element_count(view.layer.ungrouped_weight.shape[1:])
    return {
        "unknowns as published": published_unknowns(
            input_elements=elements, kernel_elements=kernel, kappa=view.kappa
        ),
        "equations as published": published_equations(output_positions=element_count(outputs[1:])),
        "unknowns as counted": counted_unknowns(
            input_elements=elements, output_channels=outputs[0], kernel_elements=kernel, kappa=view.kappa
        ),
        "equations as counted": counted_equations(
            input_elements=elements, output_elements=element_count(outputs)
        ),
    }


ATTACK = Attack(
    name="reversing",
    title="Solving the augmented layer for the core",
    attacker=Attacker.DEVELOPER,
    view=DeveloperView,
    run=run,
    source="the paper's Aug-Conv reversing attack, as described, and with the order of channels found",
    advice=(
        "Use a key for one developer only: whoever solves it once unmorphs everything else made with it."
    ),
    helps=AGAINST_THE_DEVELOPER
    | {
        Measure.KAPPA_ONE: "Use kappa = 1: with more, the core can be solved for even where features do "
        "not hold the images."
    },
)
