"""Is something true of an image, that its label does not show? A linear classifier on noisy features.

It learns from public images of the same kind, of which the attacker knows whether the property holds, put
through the same front and the same noise. The least squares over all noise that could be drawn have a
closed form, so nothing is left to the luck of a drawing.
"""

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import Attack, Finding, Reader
from mole.attacks.tools.linear_on_noise import LinearOnNoise
from mole.attacks.tools.protected_view import ProtectedView
from mole.attacks.tools.views import NotApplicableError

FEWEST_PUBLIC = 32


def run(view: ProtectedView, _: np.random.Generator) -> Finding:
    """Give every row a figure for each property: the larger, the more likely its image has it."""
    public, features = view.similar(FEWEST_PUBLIC)
    asked = {name: has for name, has in view.public_has.items() if _differs(has)}
    if not asked:
        raise NotApplicableError("all public images are alike in what is asked for")
    targets = np.stack([*asked.values()], axis=1).astype(float)
    linear = LinearOnNoise.fit(view.channel.expected(features), targets, view.channel.sigma)
    told = linear(view.rows)
    return Finding(
        words=(
            f"A linear classifier learned from {len(public):,} public images, through the same front and "
            f"the same noise, which of them are {' and which '.join(asked)} than the middle one; then it "
            f"was asked of {len(view.rows):,} rows whose images are."
        ),
        has={name: told[:, place] for place, name in enumerate(asked)},
        facts={"public images": len(public), "rows": len(view.rows), "asked": list(asked)},
    )


def _differs(has: npt.NDArray[np.bool_]) -> bool:
    """Whether some images have it and some do not."""
    return bool(has.any()) and not has.all()


ATTACK = Attack(
    name="property-inference",
    title="Is the image a bright one?",
    attacker=Reader.PROFILER,
    view=ProtectedView,
    run=run,
    source="this project: linear least squares over images and noise",
    advice="Deliver with fewer bits if that is too much.",
)
