"""Write the figures of docs/protection.md from results: `python tools/protection.py`.

What stands between `<!-- name -->` and `<!-- end -->` is made here; the words around it are written by
hand.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from mole.audit.intervals import share_of
from mole.experiments.frontier_report import bits_in_words, drawing, figure, markdown, sizes_table, table
from mole.experiments.results_folder import save_drawing
from mole.protection.certificate import Certificate
from mole.protection.known_channel import KnownChannel
from mole.quantities import at_most

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "protection.md"
PICTURE = ROOT / "docs" / "pictures" / "frontier.svg"
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NAMES = {"cifar10": "CIFAR-10", "pathmnist": "PathMNIST", "pneumoniamnist": "PneumoniaMNIST"}
MEDICAL = ("PathMNIST", "PneumoniaMNIST")
CHOICES = (8.0, 4.0, 2.0, 1.0, 0.5)
FEATURES = 128
CONFIDENCE = 0.95
Row = dict[str, Any]


def result(name: str) -> Row:
    """What was measured; sets of images have the names that their makers gave them."""
    read: Row = json.loads((RESULTS / f"{name}.json").read_text())
    for images in read.get("sets", []):
        images["images"] = NAMES[images["images"]]
    return read


def last_rows(images: Row) -> dict[float | None, Row]:
    """What was measured of the last front, by its bits."""
    return {row["bits"]: row for row in images["ways"][-1]["rows"]}


def bounds() -> str:
    """What a number of bits promises."""
    guesses = "factor by which a guess gets likelier to be right"
    rows = [
        ["bits", "noise, sigma", guesses, "epsilon", "picked out of 10", "out of 1,000", "out of a million"]
    ]
    for bits in CHOICES:
        one = Certificate.for_bits(bits, features=FEATURES)
        among = (f"{at_most(100 * one.identification(count))} %" for count in (10, 1_000, 1_000_000))
        times, epsilon = at_most(2**one.maximal_leakage), at_most(one.epsilon())
        rows.append([f"{bits:g}", f"{one.sigma:.2f}", times, epsilon, *among])
    return markdown(rows)


def accuracy() -> str:
    """The frontier of CIFAR-10."""
    return table(result("frontier"), "accuracy", ["CIFAR-10"])


def areas() -> str:
    """The frontiers of medical images."""
    return table(result("frontier"), "auc", MEDICAL)


def sizes() -> str:
    """More and fewer images."""
    return sizes_table(result("frontier"), "CIFAR-10")


def attacks() -> str:
    """What attackers got from the last front's rows."""
    sets = result("frontier")["sets"]
    heads = [f"{one['images']}, {what}" for what in ("picked out", "rebuilt") for one in sets]
    rows = [["bits", "picked out of 1,000, at most", *heads]]
    for number, found in enumerate(sets[0]["ways"][-1]["rows"]):
        bits = found["bits"]
        decoded = [next((row for row in one["decoder"] if row["bits"] == bits), None) for one in sets]
        told = [f"{row['decoder_db'] - row['mean_image_db']:+.2f} dB" if row else "-" for row in decoded]
        shares = ["-"] * len(sets)
        if bits is not None:
            measured = [one["ways"][-1]["rows"][number]["identified"]["mean"] for one in sets]
            shares = [figure(share, "identified") for share in measured]
        most = "-" if bits is None else figure(found["identified_at_most"], "identified")
        rows.append([bits_in_words(bits), most, *shares, *told])
    return markdown(rows)


def intervals() -> str:
    """How sure it is how often rows are picked out at 1 bit."""
    told = []
    for images in result("frontier")["sets"]:
        row = last_rows(images)[1.0]
        tried = row["identifications_tried"]
        found = share_of(row["identified"]["mean"] * tried, tried, CONFIDENCE)
        low, high = (figure(share, "identified").removesuffix(" %") for share in found[1:])
        told.append(f"{low} to {high} % for {images['images']} ({tried:,} rows)")
    one = Certificate.for_bits(1.0, features=FEATURES)
    return (
        f"At 1 bit the share picked out is, with 95 % confidence, {', '.join(told)}. Of rows of length 1 "
        f"that all stand at right angles to each other, {figure(picked_at_right_angles(one), '')} would be "
        "picked out; rows that are shorter or more alike are picked out less often."
    )


def picked_at_right_angles(one: Certificate) -> float:
    """How often rows as long as the clip are picked out of 1,000 that have nothing in common."""
    channel, longest = KnownChannel(one), one.clip * np.eye(1, one.features)

    def density(at: float) -> float:
        ratio = one.clip / one.sigma
        likelier = channel.told(np.array([ratio * at - ratio**2 / 2]), longest)
        return float(norm.pdf(at) * np.exp(likelier[0]))

    return float(quad(lambda at: density(at) * norm.cdf(at) ** 999, -10, 10, limit=200)[0])


def nearest_means() -> str:
    """What class means alone give, with and without noise."""
    rows = [["images", "nearest class mean, no noise", "1 bit", "linear head, no noise", "1 bit"]]
    for images in result("frontier")["sets"]:
        found = last_rows(images)
        cells = [
            figure(found[bits][measure]["mean"], measure)
            for measure in ("nearest_mean_accuracy", "accuracy")
            for bits in (None, 1.0)
        ]
        rows.append([images["images"], *cells])
    (found,) = [one for one in result("frontier")["sets"] if one["images"] == "CIFAR-10"]
    heads = last_rows(found)
    lost, by_noise = (
        100 * (heads[None][name]["mean"] - heads[1.0][name]["mean"])
        for name in ("accuracy", "nearest_mean_accuracy")
    )
    return (
        f"{markdown(rows)}\n\nCIFAR-10 loses {lost:.1f} points at 1 bit, and its nearest class mean "
        f"{by_noise:.1f}: the rest is what a better head makes of clean features, and could not be "
        "learned from such noisy rows. A front whose classes lie further apart would lose less."
    )


def calibrated() -> str:
    """Two classes after calibration, and after adapting."""
    (images,) = [one for one in result("frontier")["sets"] if one["images"] == "PneumoniaMNIST"]
    rows, alone = last_rows(images), images["validation_alone"]
    scaled, adapted, means = (
        [figure(rows[bits][f"{name}_accuracy"]["mean"], "accuracy") for bits in (None, 1.0)]
        for name in ("calibrated", "adapted", "nearest_mean")
    )
    return (
        "The classes of PneumoniaMNIST are not equally frequent. After calibration on its "
        f"{alone['images']} validation images the head is right on {scaled[0]} without noise and on "
        f"{scaled[1]} at 1 bit. With `--adapt`, which corrects the head's weights on those images too, it "
        f"is {adapted[0]} and {adapted[1]}. Most of that comes from the {alone['images']} images "
        "themselves: without any delivery, they teach a head that is right on "
        f"{figure(alone['accuracy'], '')} (AUC {figure(alone['auc'], 'auc')}), or on "
        f"{figure(alone['adapted_accuracy'], '')} when a head that knows nothing is adapted to them. As on "
        "CIFAR-10, the noise itself costs little: the nearest class mean is right on "
        f"{means[0]} without noise and on {means[1]} at 1 bit."
    )


def alone() -> str:
    """What a small network's own public images give without any delivery."""
    lines = []
    for images in result("frontier")["sets"]:
        found, small = images["public_part_alone"], images["ways"][-2]["rows"]
        measure = "accuracy" if images["classes"] == 10 else "auc"
        at_one = next(row for row in small if row["bits"] == 1)[measure]["mean"]
        lines.append(
            f"- {images['images']}: {figure(found[measure], measure)} from {found['images']:,} public "
            f"images alone, {figure(at_one, measure)} from the delivery of all others at 1 bit."
        )
    return "\n".join(lines)


def rate() -> str:
    """What clip and noise take beside the front."""
    shares = [
        f"{100 * one['share_of_the_front_alone']:.0f} % ({one['network']}, {one['images']})"
        for one in result("protect")["fronts"]
    ]
    return (
        f"Protected rows come at {' and '.join(shares)} of the rate of the front alone "
        "([`protect.json`](../benchmarks/results/protect.json))."
    )


MAKERS: dict[str, Callable[[], str]] = {
    make.__name__: make
    for make in (bounds, accuracy, areas, sizes, attacks, intervals, nearest_means, calibrated, alone, rate)
}


def document() -> str:
    """The document, with the figures of the results as they are now."""
    return BLOCK.sub(lambda at: f"{at[1]}{MAKERS[at[2]]()}\n{at[3]}", DOCUMENT.read_text())


if __name__ == "__main__":
    DOCUMENT.write_text(document())
    save_drawing(drawing(result("frontier")), PICTURE)
