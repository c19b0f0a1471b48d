"""The paper's brute force: guess cores, and keep the one under which morphed rows look most like images.

On the few rows that one looks at, an evenly drawn rotation is a set of evenly drawn directions, as many as
those rows span. So a guess costs milliseconds at any size, and is exactly as good as a guess of the whole
core. The guesses are rotations; any other kind of core has more numbers to get right.
"""

import numpy as np

from mole.analysis.security import log2_core_guess_bound
from mole.attacks.tools.attack import Attack, Attacker, Finding, UpTo
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.scheme.shapes import Array, element_count

GUESSES = 500
ROWS = 32  # by which a guess is judged
SIGMA = 0.5  # images half wrong count as recovered: the paper's own figure
SHOWS_THROUGH = (
    " What there is to be seen under a guess is how much each block holds, which no rotation changes."
)
LIKE_AN_IMAGE = 0.5  # correlation of neighbouring pixels; noise has 0, photographs have 0.9


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Try a fixed number of cores."""
    if max(view.input_shape[1:] or view.input_shape) < 2:
        raise NotApplicableError("samples of this shape have no neighbouring pixels to judge a guess by")
    blocks = view.to_blocks(view.morphed[:ROWS]).astype(np.float64)
    basis, coordinates = np.linalg.qr(blocks.reshape(-1, view.block).T)  # blocks = coordinates.T @ basis.T
    best, images = -np.inf, view.morphed[:0]
    for _ in range(GUESSES):
        guess = coordinates.T @ _directions(basis.shape, rng).T
        tried = view.to_samples(guess.reshape(blocks.shape))
        likeness = neighbour_correlation(tried)
        if likeness > best:
            best, images = likeness, tried
    bound = log2_core_guess_bound(
        input_elements=element_count(view.input_shape), kappa=view.kappa, sigma=SIGMA
    )
    chance = min(bound + np.log2(GUESSES), 0.0)
    usual = None if view.public is None else neighbour_correlation(view.public[:ROWS].astype(np.float64))
    return Finding(
        words=f"{_words(best, usual)}{SHOWS_THROUGH if view.kappa > 1 else ''}",
        images=images.astype(np.float32),
        up_to=UpTo.CONTRAST,  # a negative has neighbours as alike as its positive
        facts={
            "guesses": GUESSES,
            "log2 of the published chance of one guess": bound,
            "log2 of the published chance of all of them": float(chance),
            "neighbouring pixels, best guess": round(best, 4),
            "neighbouring pixels, public images": None if usual is None else round(usual, 4),
        },
    )


def neighbour_correlation(samples: Array) -> float:
    """How alike neighbouring pixels are over all channels, the strong ones counting most.

    Samples, (n, channels, *grid), or (n, elements) without channels.

    >>> ramp = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> round(neighbour_correlation(ramp), 2), round(neighbour_correlation(ramp[..., ::-1]), 2)
    (0.8, 0.8)
    """
    values = samples if samples.ndim > 2 else samples[:, np.newaxis]
    grid = tuple(range(2, values.ndim))
    values = values - values.mean(axis=(0, *grid), keepdims=True)
    energy = float(np.square(values).mean())
    steps = [np.square(np.diff(values, axis=axis)).mean() for axis in grid if values.shape[axis] > 1]
    # Half the mean square of steps between neighbours is energy times (1 - correlation).
    return (energy - float(np.mean(steps)) / 2) / max(energy, 1e-300)


def _directions(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Evenly drawn orthonormal columns, (q, how many)."""
    directions, triangle = np.linalg.qr(rng.normal(size=shape))
    drawn: Array = directions * np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    return drawn


def _words(best: float, usual: float | None) -> str:
    compared = "" if usual is None else f" (public images: {usual:.2f})"
    looks = "looks like images" if best > LIKE_AN_IMAGE else "looks like noise"
    return (
        f"The best of {GUESSES} guessed cores {looks}: neighbouring pixels correlate at {best:.2f}"
        f"{compared}."
    )


ATTACK = Attack(
    name="brute-force-core",
    title="Guessing the core",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="paper, Theorem 1",
    advice="Nothing to do: no core that a key allows can be guessed. Other attacks do not guess.",
)
