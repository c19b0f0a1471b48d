"""What an outsider finds with something besides the morphed files.

That is: images some of which were delivered, a second delivery, images to ask about, or the knowledge that
some images are black. On the Fashion-MNIST that ships with the package, shrunk to 14x14 (7x7 for
membership), for each core, with another key and another order of the images for each seed. Every attack is
also tried where it should find nothing: on images that were not delivered, with another key, without black
images.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import mole
from common import write_result
from mole.attacks import blank_images, cross_delivery, overlap
from mole.attacks.membership import by_length, by_rotation
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.views import OutsiderView
from mole.audit.scoring import Truth, same_rows, score
from mole.exchange.shards import Encoding
from mole.scheme.likeness import correlations
from mole.scheme.shapes import Array, unroll
from mole.sources.bundled import fashion_mnist

CORES = ("orthogonal", "gaussian", "whitened")
SEEDS = range(5)
LOOKS = {"normalised": mole.Normalisation((0.286,), (0.353,)), "0 to 1": mole.Normalisation((0.0,), (1.0,))}
BLACK_PIXEL = np.zeros((1, 1, 1, 1), np.uint8)
ROWS = 1000  # that are delivered, that are public, and that stand in a second delivery
IN_BOTH = 500  # rows of two deliveries
DELIVERED, ASKED = 2500, 500  # where the question is whether an image was delivered
BLANK = 20
Measured = dict[str, float]


class Images(NamedTuple):
    """Plain images, (n, 1, side, side), and their classes: the provider's, and other people's."""

    private: Array
    public: Array
    labels: npt.NDArray[np.int64]
    public_labels: npt.NDArray[np.int64]


def main() -> None:
    """Run the benchmark."""
    results = []
    for attack, measure, tried in SETTINGS:
        for core in CORES:
            seeds = [measure(core, seed, **tried) for seed in SEEDS]
            figures = {figure: [round(float(one[figure]), 4) for one in seeds] for figure in seeds[0]}
            results.append({"attack": attack, "tried": tried, "core": core, **figures})
            print(results[-1], flush=True)
    sizes = {"rows": ROWS, "in both": IN_BOTH, "delivered": DELIVERED, "asked": ASKED}
    write_result("outsider", {"images": "Fashion-MNIST", "seeds": len(SEEDS), **sizes, "results": results})


def drawn(side: int, seed: int, pixels: str = "normalised") -> Images:
    """3,000 private and 3,000 public images, in another order for each seed."""
    bundled, rng = fashion_mnist(), np.random.default_rng(seed)
    images, labels = [], []
    for kind in ("private", "public"):
        order = rng.permutation(len(bundled[f"x_{kind}"]))
        plain = LOOKS[pixels].apply(bundled[f"x_{kind}"][order][:, np.newaxis])
        step = plain.shape[-1] // side
        images.append(plain.reshape(-1, 1, side, step, side, step).mean(axis=(3, 5)))
        labels.append(bundled[f"y_{kind}"][order].astype(np.int64))
    return Images(*images, *labels)


def key_for(plain: Array, core: str, seed: int, kappa: int = 1) -> mole.MorphKey:
    """A key; a whitened core has learned from the very images that are delivered."""
    return mole.MorphKey.generate(
        plain.shape[1:],
        kappa=kappa,
        core=core,
        sample=plain if core == "whitened" else None,
        insecure_seed=bytes([seed] * 32),
    )


def overlapping(core: str, seed: int, *, kappa: int, shared: int) -> Measured:
    """Delivered images that are found among public ones, and what they tell about the others."""
    images = drawn(14, seed)
    plain = images.private[:ROWS]
    public = np.concatenate([images.public[: ROWS - shared], plain[ROWS - shared :]])
    morphed = mole.morph(plain, key_for(plain, core, seed, kappa))
    view = OutsiderView(morphed=morphed, kappa=kappa, public=public)
    found = overlap.ATTACK.run(view, np.random.default_rng(seed))
    measured = score(found, Truth(plain, public=public))
    return {
        "found": measured.linked or 0.0,
        "wrong": wrong_links(found, plain, public),
        "others picked out": measured.reidentified or 0.0,  # of the first 256, none of which is public
        # Over the standard deviation; 1 where nothing was rebuilt.
        "error of others": 1.0 if measured.rmse is None else measured.rmse,
    }


def linked(core: str, seed: int, *, same_key: bool) -> Measured:
    """Rows of one delivery that are found in another, which is of 8 bits."""
    images = drawn(14, seed)
    plain, other = images.private[:ROWS], images.private[ROWS - IN_BOTH : 2 * ROWS - IN_BOTH]
    key = key_for(plain, core, seed)
    rows = unroll(mole.morph(other, key if same_key else key_for(plain, core, seed + 100)))
    eight = Encoding.fit("int8", rows)
    elsewhere = eight.decode(eight.encode(rows)).reshape(other.shape)
    view = OutsiderView(morphed=mole.morph(plain, key), kappa=1, elsewhere=elsewhere)
    found = cross_delivery.ATTACK.run(view, np.random.default_rng(seed))
    measured = score(found, Truth(plain, elsewhere=other))
    return {"found": measured.linked or 0.0, "wrong": wrong_links(found, plain, other)}


def wrong_links(found: Finding, plain: Array, others: Array) -> int:
    """How many links are between images that are not the same."""
    rows, images = np.asarray(found.links).T
    return int(np.count_nonzero(~same_rows(unroll(others[images]), unroll(plain[rows]))))


def ranked(core: str, seed: int, *, by: str, labels: bool, delivered: bool) -> Measured:
    """The chance that a delivered image is ranked before another; or one that was left at home."""
    images = drawn(7, seed)
    plain, known = images.private[:DELIVERED], len(images.public) - ASKED
    asked = plain[:ASKED] if delivered else images.private[DELIVERED : DELIVERED + ASKED]
    view = OutsiderView(
        morphed=mole.morph(plain, key_for(plain, core, seed)),
        kappa=1,
        public=images.public[:known],
        labels=images.labels[:DELIVERED] if labels else None,
        public_labels=images.public_labels[:known] if labels else None,
    )
    candidates = np.concatenate([asked, images.public[known:]])
    if by == "lengths":
        likely = by_length(view, candidates)
    else:
        likely = by_rotation(view, candidates, np.random.default_rng(seed))
    members = np.arange(len(candidates)) < ASKED
    measured = score(Finding("", membership=likely), Truth(plain, members=members))
    return {"ranked before": measured.membership or 0.0}


def read_off(core: str, seed: int, *, pixels: str, blank: int) -> Measured:
    """The number that blank images give of every other row: of its pixels, and of its brightness."""
    images = drawn(14, seed, pixels)
    plain, lively = images.private.copy(), images.private[blank:]
    plain[:blank] = LOOKS[pixels].apply(BLACK_PIXEL)
    view = OutsiderView(
        morphed=mole.morph(plain, key_for(plain, core, seed)), kappa=1, public=images.public
    )
    found = blank_images.ATTACK.run(view, np.random.default_rng(seed))
    taken = found.facts.get("rows taken for blank", 0)
    if found.coefficients is None:
        return {"taken for blank": taken, "weighted sum": 0.0, "brightness": 0.0, "of another row": 0.0}
    # Blank images are left out of the score: they lie so far off that any two numbers would go together.
    number = found.coefficients[blank:]
    others = replace(found, coefficients=number)
    brightness = unroll(lively).mean(axis=1)[np.newaxis]
    return {
        "taken for blank": taken,
        "weighted sum": (score(others, Truth(lively)).components or (0.0,))[0],
        "brightness": abs(float(correlations(number.T, brightness)[0, 0])),
        "of another row": (score(others, Truth(np.roll(lively, 1, axis=0))).components or (0.0,))[0],
    }


def counted(core: str, seed: int, *, border: bool) -> Measured:
    """Directions in which morphed data does not vary; the border is one pixel wide and has 52."""
    plain = drawn(14, seed).private.copy()
    if border:
        plain[:, :, [0, -1]] = plain[:, :, :, [0, -1]] = LOOKS["normalised"].apply(BLACK_PIXEL).item()
    view = OutsiderView(morphed=mole.morph(plain, key_for(plain, core, seed)), kappa=1)
    found = blank_images.ATTACK.run(view, np.random.default_rng(seed))
    return {"without variation": found.facts["directions without variation"]}


SETTINGS: tuple[tuple[str, Callable[..., Measured], dict[str, Any]], ...] = (
    *(
        ("overlap", overlapping, {"kappa": kappa, "shared": shared})
        for kappa, shared in ((1, 0), (1, 98), (1, 196), (4, 0), (4, 13))
    ),
    *(("cross-delivery", linked, {"same_key": same}) for same in (True, False)),
    *(
        ("membership", ranked, {"by": by, "labels": labels, "delivered": delivered})
        for by, labels in (("lengths", False), ("rotation", False), ("rotation", True))
        for delivered in (True, False)
    ),
    *(
        ("blank-images", read_off, {"pixels": pixels, "blank": blank})
        for pixels in LOOKS
        for blank in (BLANK, 0)
    ),
    *(("blank-images", counted, {"border": border}) for border in (True, False)),
)


if __name__ == "__main__":
    main()
