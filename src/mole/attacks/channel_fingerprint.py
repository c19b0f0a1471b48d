"""The attack that breaks the published scheme: put the channels in order, then undo the first layer.

It needs nothing but what the protocol gives the developer anyway: morphed data, the augmented layer, and
its own layer.
"""

import numpy as np

from mole.attacks.tools.attack import AGAINST_THE_DEVELOPER, Attack, Attacker, Finding, Measure
from mole.attacks.tools.channel_order import find_order
from mole.attacks.tools.deconvolution import Deconvolution
from mole.attacks.tools.views import DeveloperView

AT_MOST = 256  # images rebuilt for the report; the rest would take no longer per image


def run(view: DeveloperView, rng: np.random.Generator) -> Finding:
    """Undo the channel shuffle, then the first layer."""
    found = find_order(view, rng)
    undo = Deconvolution.of(view.layer)
    how_much = (
        "every number of each image"
        if undo.is_exact
        else f"{undo.rank:,} of the {undo.elements:,} numbers of each image; features do not hold the rest"
    )
    return Finding(
        words=(
            f"The channel order was read off {found.method}. Undoing the first layer then gives {how_much}."
        ),
        images=undo(view.features_in_order(found.order, AT_MOST)),
        channel_order=found.order,
        facts={
            "order found by": found.method,
            "margin": round(min(found.margin, 1e12), 3),
            "numbers pinned down": undo.rank,
            "numbers in an image": undo.elements,
        },
    )


ATTACK = Attack(
    name="channel-fingerprint",
    title="Channel fingerprint and deconvolution",
    attacker=Attacker.DEVELOPER,
    view=DeveloperView,
    run=run,
    source="this project: the published bound of 1 / beta! counts guesses, and none is needed",
    advice=(
        "No key helps. Deliver only to developers whom a contract binds, or agree on a first layer with "
        "fewer features than pixels."
    ),
    helps=AGAINST_THE_DEVELOPER
    | {
        Measure.KAPPA_ONE: "Use kappa = 1: a core that is used several times can be solved for even where "
        "features do not hold the images."
    },
)
