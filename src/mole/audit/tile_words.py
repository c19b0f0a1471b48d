"""What an audit says about tiles: one small core, used hundreds of times in every image.

Tiles are for images that are too large for one core. The page says in plain words what that costs, with the
figures of the very delivery, before any attack is described.
"""

from collections.abc import Sequence

from mole.attacks.tools.attack import Attacker
from mole.audit.intervals import share
from mole.audit.report import AttackReport
from mole.audit.subject import Subject
from mole.scheme.layouts import TILED, Layout

FROM_THE_EYE = (
    "Tiles hide images from the eye only: one core of side {side:,} morphs all {tiles:,} tiles of every "
    "image, and {rows:,} images show the same small matrix at work {uses:,} times."
)
KNOWN = (
    "{have} as many tiles as the core has rows: whoever knows {them}, and which morphed {rows}, solves for "
    "the core and has every other image.{enough}"
)
REBUILT = (
    "A stranger who has only the morphed files, and {public:,} similar images from elsewhere, rebuilt "
    "images here of which {share} could be picked out among {among:,} ({attack})."
)
NOT_TRIED = (
    "What a stranger with similar images from elsewhere rebuilds was not tested: give public images of the "
    "same kind."
)
CROPPED = (
    "Attacks were run on a part of each image: {crop}. What works on one tile works on all of them, and an "
    "attacker who uses all has more to go by."
)
WHAT_TO_DO = (
    "{seal}, deliver it only to a developer whom you trust not to attack, and use blocks of rows instead "
    "of tiles where images are small enough."
)
SEAL, SEALED = "Seal such a delivery", "Keep such a delivery sealed"


def remarks_on(subject: Subject, attacks: Sequence[AttackReport]) -> tuple[str, ...]:
    """What tiles mean for a subject that has them, from what attacks on it found; nothing for others."""
    whole = subject.uncut
    if whole.layout not in TILED:
        return ()
    layout = Layout.of(whole.layout, whole.input_shape, whole.kappa)
    rows = subject.rows or len(subject.morphed)
    return (
        FROM_THE_EYE.format(side=layout.block, tiles=layout.kappa, rows=rows, uses=rows * layout.kappa),
        _known(layout, _enough(attacks) if subject.crop is None else None),
        _stranger(subject, attacks),
        *(() if subject.crop is None else (CROPPED.format(crop=subject.crop),)),
        WHAT_TO_DO.format(seal=SEALED if subject.sealed else SEAL),
    )


def _known(layout: Layout, enough: int | None) -> str:
    """How many known images give the core, by counting and, where whole images were solved for, here."""
    count = -(-layout.block // layout.kappa)
    one = count == 1
    told = "" if enough is None else f" Here {_images(enough)} enough."
    return KNOWN.format(
        have="One image has" if one else f"{count:,} images have",
        them="one" if one else "them",
        rows="row it became" if one else "rows they became",
        enough=told,
    )


def _images(count: int) -> str:
    return "one image was" if count == 1 else f"{count:,} images were"


def _enough(attacks: Sequence[AttackReport]) -> int | None:
    found = [one.facts.get("pairs that were enough") for one in attacks]
    return next((count for count in found if count is not None), None)


def _stranger(subject: Subject, attacks: Sequence[AttackReport]) -> str:
    """The outsider's attack that picked out most images."""
    tried = [
        (one.score.reidentified, one.score.correlation or 0.0, one)
        for one in attacks
        if one.attack.attacker == Attacker.OUTSIDER and one.score and one.score.reidentified is not None
    ]
    if subject.public is None or not tried:
        return NOT_TRIED
    _, _, best = max(tried, key=lambda found: found[:2])
    score = best.score
    return REBUILT.format(
        public=len(subject.public),
        share=share((score and score.reidentified) or 0.0),
        among=(score and score.among) or 0,
        attack=best.attack.title,
    )
