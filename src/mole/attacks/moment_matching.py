"""What labels and higher moments give away, even of a whitened core with kappa = 1.

Whitening leaves a secret rotation, and everything that is not second order turns with it: the mean and the
covariance within each class, those of short and of long rows, third moments. Somebody with public images of
the same kind computes the same on both sides and looks for the rotation under which all of it agrees; from
there on, third moments along the directions in which images vary most sharpen it, round by round. Labels
lie in the delivered files, and help where the public images have classes as well.

Attacks of this family on rotated data are known from private data mining: K. Liu, C. Giannella and
H. Kargupta, An attacker's view of distance preserving maps for privacy preserving data mining (PKDD 2006);
S. Guo and X. Wu, Deriving private information from arbitrarily projected data (PAKDD 2007).
"""

from typing import NamedTuple

import numpy as np

from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.blocks import RotationSearch, Whitened
from mole.attacks.tools.higher_moments import (
    Directions,
    Groups,
    climbed,
    fewer,
    find_rotation,
    leading_means,
    leading_space,
    with_further,
)
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.scheme.shapes import Array

MOST_SIDE = 3072
MOST_NUMBERS = 40_000_000  # on each side; of more, the first rows are used
MOST_WHOLE, MOST_SPACE = 256, 128  # rows up to this size are turned whole; of larger ones, as many
# directions as say most, and of those larger than this, the directions that means lie in:
MOST_SQUARE = 1024
MOST_MATRICES = 32
MOST_GROUPS = 64  # classes times places
LENGTHS = {True: 3, False: 8}  # shares by length: with groups, and without
FEWEST_ROWS = 200
STARTS, STEPS = 3, 48
ROUNDS, ROUND_STEPS, LEADING = 5, 25, 12  # of sharpening by third moments, along so many directions
AT_MOST_IMAGES = 512


class Rotation(NamedTuple):
    """What undoes the morphing, as far as it was found.

    Attributes:
        inverse: morphed blocks, less their mean, times this are plain ones, less theirs: (q, q).
        morphed_mean, public_mean: (q,).
        agreement: of the moments on both sides, as a share of the most there could be.
        rows, public_rows: how many blocks were compared.
        classes: how many classes were told apart; 0 without labels.
    """

    inverse: Array
    morphed_mean: Array
    public_mean: Array
    agreement: float
    rows: int
    public_rows: int
    classes: int

    def undo(self, blocks: Array) -> Array:
        """Plain blocks, (n, kappa, q)."""
        turned: Array = (blocks - self.morphed_mean) @ self.inverse + self.public_mean
        return turned.astype(np.float32)


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Find the rotation, and undo it."""
    found = match_moments(view, rng)
    images = found.undo(view.to_blocks(view.morphed[:AT_MOST_IMAGES]))
    by = f"in {found.classes} classes" if found.classes else "without labels"
    return Finding(
        words=(
            f"Means, covariances and third moments of {found.rows:,} morphed blocks {by}, {view.block:,} "
            f"numbers each, were turned until they agreed with those of {found.public_rows:,} public ones "
            f"(to {found.agreement:.0%}). The images are as good as that rotation."
        ),
        images=view.to_samples(images),
        unmorph=found.undo,
        facts={
            "q": view.block,
            "blocks, morphed": found.rows,
            "blocks, public": found.public_rows,
            "blocks per q": round(found.rows / view.block, 1),
            "classes": found.classes,
            "agreement with public images": round(found.agreement, 4),
        },
    )


def match_moments(view: OutsiderView, rng: np.random.Generator, *, labels_alone: bool = False) -> Rotation:
    """The rotation between morphed data and public images.

    Args:
        view: what the attacker has; labels are used where both sides have them.
        rng: where the search starts.
        labels_alone: use nothing but what tells the classes apart, to see what labels give by themselves.

    Raises:
        NotApplicableError: if there is nothing to compare, or it takes too long.
    """
    view = view.statistical
    images = _check(view)
    most = max(FEWEST_ROWS, MOST_NUMBERS // (view.kappa * view.block))
    public, public_mean = _centred(view.to_blocks(images[:most]))
    morphed, morphed_mean = _centred(view.to_blocks(view.morphed[:most]))
    plain, turned = Whitened.of(public), Whitened.of(morphed)
    for with_labels in (True, False):  # labels help nothing where no class is on both sides
        classes, groups = _groups(view, len(public), len(morphed), with_labels=with_labels)
        lengths = 1 if labels_alone else LENGTHS[groups[0] is not None]
        sides = (
            Directions.of(plain.blocks.reshape(-1, view.block), groups[0], lengths),
            Directions.of(turned.blocks.reshape(-1, view.block), groups[1], lengths),
        )
        if sides[0].common_cells(sides[1]):
            break
    else:
        raise NotApplicableError("There are too few images to compare their moments.")
    found, agreement = _search(sides, _leading(plain), rng, labels_alone=labels_alone)
    inverse = (turned.whiten @ found.T @ plain.colour).astype(np.float32)
    counts = (len(sides[1].rows), len(sides[0].rows))
    return Rotation(inverse, morphed_mean, public_mean, agreement, *counts, classes)


def _search(
    sides: tuple[Directions, Directions], leading: Array, rng: np.random.Generator, *, labels_alone: bool
) -> tuple[Array, float]:
    """The rotation, as far as the space goes in which moments say most, and its agreement."""
    cells = sides[0].common_cells(sides[1])
    ours, theirs = (_space(side, cells) for side in sides)
    plain, turned = sides[0].within(ours), sides[1].within(theirs)
    apart = find_rotation(
        plain.moments(cells, apart=True), turned.moments(cells, apart=True), rng, starts=STARTS, steps=STEPS
    )
    if labels_alone:
        return ours @ apart[0] @ theirs.T, apart[1]
    public, morphed = plain.moments(cells), turned.moments(cells)
    public, morphed = fewer(
        with_further(public, plain.third_moments(public.means)),
        with_further(morphed, turned.third_moments(morphed.means)),
        MOST_MATRICES,
    )
    whole = find_rotation(public, morphed, rng, starts=STARTS, steps=STEPS)
    along = ours.T @ leading
    sharp = with_further(public, plain.third_moments(along.T))
    best: tuple[Array, float] = np.empty((0, 0)), -np.inf
    for begin in (apart[0], whole[0]):  # from both, because either may lead to a lesser summit
        found, agreement = climbed(RotationSearch(public, morphed), begin, STEPS)
        for _ in range(ROUNDS):
            further = with_further(morphed, turned.third_moments((found.T @ along).T))
            found, agreement = climbed(RotationSearch(sharp, further), found, ROUND_STEPS)
        best = max(best, (found, agreement), key=lambda pair: pair[1])
    return ours @ best[0] @ theirs.T, best[1]


def _space(side: Directions, cells: list[int]) -> Array:
    """The part of the space in which the rotation is sought; all of it where that is small."""
    elements = side.rows.shape[1]
    if elements <= MOST_WHOLE:
        return np.eye(elements)
    if elements > MOST_SQUARE:
        return leading_means(side.means(cells))
    return leading_space(side.moments(cells), MOST_SPACE)


def _check(view: OutsiderView) -> Array:
    public = view.similar(FEWEST_ROWS, "to compare their moments")
    if view.block > MOST_SIDE:
        raise NotApplicableError(
            f"a core of side {view.block:,} takes too long here: {MOST_SIDE:,} is the limit"
        )
    return public


def _centred(blocks: Array) -> tuple[Array, Array]:
    """Blocks less their mean over all places, and that mean."""
    mean = blocks.mean(axis=(0, 1), dtype=np.float64).astype(np.float32)
    return (blocks - mean).astype(np.float32), mean


def _leading(public: Whitened) -> Array:
    """The directions in which public images vary most, (q, some)."""
    directions: Array = np.linalg.eigh(public.colour)[1][:, : -LEADING - 1 : -1]
    return directions


def _groups(
    view: OutsiderView, public: int, morphed: int, *, with_labels: bool
) -> tuple[int, tuple[Groups | None, Groups | None]]:
    """How many classes are told apart, and the class and place of every block on both sides.

    Without labels there are no classes; where there is one place as well, there are no groups at all.
    """
    labels = [np.zeros(public, np.int64), np.zeros(morphed, np.int64)]
    classes = 0
    if with_labels and view.public_labels is not None and view.labels is not None:
        known = np.unique(np.concatenate([view.public_labels, view.labels]))
        both = (view.public_labels[:public], view.labels[:morphed])
        labels, classes = [np.searchsorted(known, some) for some in both], len(known)
    places = view.kappa if view.kappa * max(classes, 1) <= MOST_GROUPS else 1
    if places * max(classes, 1) == 1:
        return classes, (None, None)
    place = np.arange(view.kappa) % places
    ours, theirs = ((some[:, np.newaxis] * places + place).reshape(-1).astype(np.int64) for some in labels)
    return classes, (ours, theirs)


ATTACK = Attack(
    name="moment-matching",
    title="Matching of higher moments",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project; the family is known as attacks on rotation perturbation (Liu et al., PKDD 2006)",
    advice=(
        "Deliver few images against the side of the core: every further image under one core helps this "
        "attack."
    ),
    helps={
        Measure.SEALED: "Seal the delivery for its developer.",
        Measure.NO_LABELS: "Leave labels out where you can.",
    },
)
