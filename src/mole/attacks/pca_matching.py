"""What morphed data alone shows to somebody with public images of the same kind: its principal components.

Morphing turns the directions in which images vary most, but hardly changes how much they vary along them:
not at all for an orthogonal core, by a few per cent for a random one. So the strongest direction of the
morphed data is the strongest direction of images, the second the second, and so on: brightness, colour,
what is dark on the left and light on the right. A whitened core with kappa = 1 makes all directions equally
strong, so that they cannot be ranked.
"""

from typing import Any, NamedTuple

import numpy as np

from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.errors import MissingExtraError
from mole.scheme.shapes import Array, roll, unroll

COMPONENTS = 10
FOR_SIGNS = 20  # more than are used: the others help to find the signs
FEWEST_ROWS = 100  # with fewer, chance decides which direction is the strongest
AT_MOST_ROWS = 20_000
FLAT = 1.5  # the strongest direction over the twentieth, below which ranks are mere chance
AT_MOST_IMAGES = 256
OVERSAMPLING, ROUNDS = 20, 5  # of the randomised decomposition


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Match the strongest directions of morphed data and of public images by their rank."""
    public = _rows(view.similar(), "public images")
    morphed = _rows(view.morphed, "morphed rows")
    count = min(FOR_SIGNS, morphed.shape[1])
    ours, theirs = leading_components(public, count, rng), leading_components(morphed, count, rng)
    used = min(COMPONENTS, count)
    scale = np.sqrt(ours.variances / np.maximum(theirs.variances, np.finfo(np.float64).tiny))
    along = ((theirs.coefficients * _signs(ours, theirs) * scale)[:, :used]).astype(np.float32)
    directions = ours.directions[:used].astype(np.float32)
    offset = ours.mean @ ours.directions[:used].T  # the scorer's coefficients count from zero
    images = ours.mean + along[:AT_MOST_IMAGES].astype(np.float64) @ directions
    steepness = _steepness(theirs.variances), _steepness(ours.variances)
    flat = steepness[0] < FLAT
    return Finding(
        words=_words(flat, used, len(morphed), steepness),
        images=roll(images.astype(np.float32), view.input_shape),
        directions=directions,
        coefficients=(along + offset).astype(np.float32),
        facts={
            "components": used,
            "rows": len(morphed),
            "public images": len(public),
            "strongest over last direction, morphed": round(float(steepness[0]), 2),
            "strongest over last direction, public": round(float(steepness[1]), 2),
        },
    )


class Components(NamedTuple):
    """The strongest directions of rows.

    Attributes:
        mean: of the rows, (elements,).
        variances: along each direction, the largest first, (c,).
        directions: unit vectors, (c, elements).
        coefficients: how far each row goes from the mean along each direction, (n, c).
    """

    mean: Array
    variances: Array
    directions: Array
    coefficients: Array


def leading_components(rows: Array, count: int, rng: np.random.Generator) -> Components:
    """The leading principal components of rows, (n, elements).

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(500, 40)) * ([9.0, 5.0, 3.0] + [0.1] * 37)
    >>> leading_components(rows, 3, rng).variances.round(-1).tolist()
    [80.0, 20.0, 10.0]
    """
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean.astype(rows.dtype)
    _, singular, directions = _randomized_svd()(
        centred, count, n_oversamples=OVERSAMPLING, n_iter=ROUNDS,
        power_iteration_normalizer="QR", random_state=int(rng.integers(1 << 31)),
    )  # fmt: skip
    variances = np.square(singular.astype(np.float64)) / len(rows)
    coefficients = (centred @ directions.T).astype(np.float64)
    return Components(mean, variances, directions.astype(np.float64), coefficients)


def _randomized_svd() -> Any:
    try:
        from sklearn.utils.extmath import randomized_svd  # noqa: PLC0415  (a second to load)
    except ImportError:
        raise MissingExtraError("principal components need scikit-learn", "audit") from None
    return randomized_svd


def _rows(samples: Array, what: str) -> Array:
    if len(samples) < FEWEST_ROWS:
        raise NotApplicableError(
            f"{len(samples)} {what} are too few to see in which directions they vary: "
            f"it takes {FEWEST_ROWS} or more"
        )
    rows = unroll(samples[:AT_MOST_ROWS])
    return rows.astype(np.float32) if rows.dtype.itemsize < 4 else rows


def _signs(ours: Components, theirs: Components) -> Array:
    """A direction and its opposite are equally strong; which it is shows in the skewness of the data.

    For each component j: how its coefficient goes with the square of every other, the mean of c_i^2 c_j.
    That does not depend on the signs of the others, and has the sign of j's.
    """
    own, found = (
        np.square(values).T @ values / len(values)
        for values in (_standardised(some.coefficients) for some in (ours, theirs))
    )
    return np.where((own * found).sum(axis=0) < 0, -1.0, 1.0)


def _standardised(coefficients: Array) -> Array:
    scaled: Array = coefficients / np.maximum(coefficients.std(axis=0), 1e-12)
    return scaled


def _steepness(variances: Array) -> float:
    """How many times stronger the first direction is than the last one looked at."""
    return float(variances[0] / max(variances[-1], np.finfo(np.float64).tiny))


def _words(flat: bool, used: int, rows: int, steepness: tuple[float, float]) -> str:
    if flat:
        return (
            f"The morphed data varies about equally in all directions (strongest over twentieth: "
            f"{steepness[0]:.1f}; public images: {steepness[1]:.0f}), so ranking them says next to nothing."
        )
    return (
        f"The {used} strongest directions of {rows:,} morphed rows were taken for those of public images. "
        "Each row's place along them gives a blurred picture: brightness, main colour, coarse layout."
    )


ATTACK = Attack(
    name="pca-matching",
    title="Matching of principal components",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: the published bounds do not consider statistics of the morphed data",
    advice="",
    helps={
        Measure.WHITENED: "Use a whitened core with kappa = 1: then all directions of morphed data are "
        "equally strong."
    },
)
