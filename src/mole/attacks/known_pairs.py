"""Known pairs of plain and morphed images, solved for the core itself (paper, equation 15).

The paper asks for q pairs. The same core stands on the diagonal kappa times, so a pair gives kappa rows of
equations, and ceil(q / kappa) pairs are enough. With fewer, the smallest solution shows as much of an image
as the known ones span. The augmented layer is not used.
"""

import numpy as np

from mole.analysis.security import counted_pairs, published_pairs
from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.pair_solution import PairSolution
from mole.attacks.tools.views import InjectingView
from mole.scheme.shapes import Array, element_count, roll

AT_MOST = 256
MOST_EQUATIONS = 6144  # rows, hence the side of the matrix to factor
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8, 1.0)
FEW_MORE = (0, 1, 2, 4)  # pairs beyond those that determine the core
HELD_OUT, MOST_HELD_OUT = 0.1, 32
SOLVED = 0.05  # relative error on known pairs set aside, up to which the core counts as found


def run(view: InjectingView, rng: np.random.Generator) -> Finding:
    """Solve for the inverse core, and measure how well that worked on known pairs set aside."""
    elements = element_count(view.input_shape)
    sizes = {"input_elements": elements, "kappa": view.kappa}
    needed, published = counted_pairs(**sizes), published_pairs(**sizes)
    most = max(1, MOST_EQUATIONS // view.kappa)
    plain, morphed = (_blocks(view, rows[:most]) for rows in (view.known, view.known_morphed))
    pairs = len(plain) // view.kappa
    curve = _curve(plain, morphed, view.kappa, needed)
    solution = PairSolution(plain, morphed)
    rebuilt = solution(_blocks(view, view.morphed[:AT_MOST]))
    error = curve[-1]["error"] if curve else None
    enough = next((int(point["pairs"]) for point in curve if point["error"] <= SOLVED), None)
    return Finding(
        words=f"{_words(pairs, needed, published, error)}{_how_few(view, enough)}",
        images=roll(view.cut.to_rows(rebuilt.astype(np.float32)), view.input_shape),
        unmorph=lambda blocks: solution(blocks.astype(np.float64)).astype(np.float32),
        facts={
            "pairs": pairs,
            "pairs that determine the core": needed,
            "pairs that were enough": enough,
            "pairs that the paper asks for": published,
            "error against pairs": curve,
        },
    )


def _curve(plain: Array, morphed: Array, kappa: int, needed: int) -> list[dict[str, float]]:
    """Relative error on pairs set aside, against the number of the others that were used."""
    pairs = len(plain) // kappa
    aside = min(MOST_HELD_OUT, round(HELD_OUT * pairs) or 1)
    used = pairs - aside
    if used < 1:
        return []
    solution = PairSolution(plain[: used * kappa], morphed[: used * kappa])
    truth, blocks = plain[used * kappa :], morphed[used * kappa :]
    size = max(float(np.linalg.norm(truth)), 1e-300)
    counts = {max(1, round(share * used)) for share in SHARES}
    if needed < used:  # where one or two images may do, it matters which
        counts |= {min(used, needed + more) for more in FEW_MORE}
    return [
        {
            "pairs": count,
            "error": float(f"{np.linalg.norm(solution(blocks, count * kappa) - truth) / size:.3g}"),
        }
        for count in sorted(counts)
    ]


def _words(pairs: int, needed: int, published: int, error: float | None) -> str:
    known = f"{pairs:,} known pair{'s' * (pairs != 1)} of plain and morphed images"
    counts = f"{needed:,} determine the core, and the paper asks for {published:,}"
    if error is None:
        return f"The core was solved for from {known}; {counts}. None was left over to measure the error."
    if pairs < needed:
        found = "do not determine the core, but show as much of other images as they span"
    else:
        found = "gave the core" if error <= SOLVED else "were solved for the core as well as they allow"
    return f"{known} {found}: images set aside came out with an error of {100 * error:.2g} % ({counts})."


def _how_few(view: InjectingView, enough: int | None) -> str:
    """How few images are enough where each has many blocks."""
    if enough is None or view.kappa == 1:
        return ""
    first = "The first one was" if enough == 1 else f"The first {enough:,} were"
    if view.blocks_of_whole is None:
        return f" {first} enough."
    few = view.images_for_core
    whole = "one whole image has" if few == 1 else f"{few:,} whole images have"
    return f" {first} enough. These are parts of images: {whole} as many blocks as the core has rows."


def _blocks(view: InjectingView, samples: Array) -> Array:
    return np.ascontiguousarray(view.cut.to_blocks(samples), dtype=np.float64)


ATTACK = Attack(
    name="known-pairs",
    title="Known pairs, solved for the core",
    attacker=Attacker.INJECTOR,
    view=InjectingView,
    run=run,
    source="the paper's D-T pair attack, with the pairs counted anew",
    advice="Do not let anybody who gets the delivery put images into the data.",
    helps={
        Measure.KAPPA_ONE: "Use kappa = 1: the number of pairs it takes falls with the square of kappa."
    },
)
