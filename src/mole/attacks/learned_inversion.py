"""A learned decoder: the fallback where algebra does not give every pixel.

A first layer with a stride, few channels or a narrow Linear layer loses part of each image, and least
squares leaves that part blank. But images of one kind resemble each other: a small network, trained on
public images that went through the developer's own layer, fills in the blanks. Needs PyTorch.
"""

import numpy as np

from mole.attacks.tools.attack import AGAINST_THE_DEVELOPER, Attack, Attacker, Finding
from mole.attacks.tools.channel_order import find_order
from mole.attacks.tools.deconvolution import Deconvolution
from mole.attacks.tools.trained_decoder import HELD_OUT, Decoder, Examples
from mole.attacks.tools.views import DeveloperView, MissingInputError, NotApplicableError
from mole.scheme.convolution import features_of

AT_MOST = 256
FEWEST_PUBLIC = 64
MOST_PUBLIC = 8192


def run(view: DeveloperView, rng: np.random.Generator) -> Finding:
    """Put the channels in order, train on public images, decode."""
    if view.public is None or len(view.public) < FEWEST_PUBLIC:
        raise MissingInputError(
            f"a decoder learns from public images of the same kind, at least {FEWEST_PUBLIC} of them"
        )
    undo = Deconvolution.of(view.layer)
    if undo.is_exact:
        raise NotApplicableError(
            "the features of this layer hold every number of an image: there is nothing to learn, algebra "
            "gives it exactly"
        )
    found = find_order(view, rng)
    public = view.public[:MOST_PUBLIC].astype(np.float32)
    aside = max(1, round(HELD_OUT * len(public)))
    check, learn = (
        Examples(some, features_of(undo.layer, some)) for some in (public[:aside], public[aside:])
    )
    decoder = Decoder(learn, check, undo, rng)
    return Finding(
        words=(
            f"The features hold {undo.rank:,} of the {undo.elements:,} numbers of an image. A small "
            f"network trained for {decoder.seconds:.0f} seconds on {decoder.images:,} public images filled "
            f"in the rest: on public images set aside its error is {decoder.error:.2f} of their "
            f"standard deviation, where least squares has {decoder.plain_error:.2f}."
        ),
        images=decoder(view.features_in_order(found.order, AT_MOST)),
        channel_order=found.order,
        facts={
            "order found by": found.method,
            "public images": decoder.images,
            "steps": decoder.steps,
            "error on public images left aside": round(decoder.error, 4),
            "error of least squares": round(decoder.plain_error, 4),
            "numbers pinned down": undo.rank,
            "numbers in an image": undo.elements,
        },
    )


ATTACK = Attack(
    name="learned-inversion",
    title="Learned decoder",
    attacker=Attacker.DEVELOPER,
    view=DeveloperView,
    run=run,
    source="this project: for layers whose features hold fewer numbers than an image",
    advice=(
        "Judge a lossy first layer by what is rebuilt here, not by its count of features: what images have "
        "in common need not be sent to be known."
    ),
    helps=AGAINST_THE_DEVELOPER,
)
