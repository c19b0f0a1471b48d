"""What the paper's privacy reservation sigma looks like: the cat, recovered by a guess that is near.

Lemma 2 scales images and the inverse matrix to length 1. A guess G at distance sigma from M^-1 then
recovers images with a relative error of sigma, and Theorem 1 bounds the chance of such a guess. How much
of a picture that leaves is this figure. The rest is geometry: G = cos(t) M^-1 + sin(t) U with U random and
2 sin(t / 2) = sigma, and a row vector times a random U is white noise of the row vector's own length. So
no matrix is needed, which for a photograph of this size would fill hundreds of gigabytes.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from skimage.restoration import denoise_nl_means

from mole.audit.scoring import psnr
from mole.experiments.drawing import figure_style, show_image
from mole.experiments.experiment import Drawing, Experiment, Request, Result
from mole.experiments.frontier_report import markdown
from mole.experiments.photographs import CAT, likeness, own_normalisation, photograph
from mole.scheme.shapes import Array

SIGMAS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
PIXELS, NORMALISED, DENOISED = "pixels", "normalised", "denoised"
IN_WORDS = {
    PIXELS: "sigma of the pixels,\n0 to 1",
    NORMALISED: "sigma of the same,\nmean 0, deviation 1",
    DENOISED: "first row, through an\nordinary denoiser",
}
SIDES = {"cpu": 96, "tiny": 24}  # of the photograph
ALT = (
    "A cat recovered under sigma from 0.05 to 1, in three rows: from pixels, from normalised pixels, and "
    "the first row through a denoiser. The cat is plain to see at 0.5 in all three, and at 1 in the second."
)


def recovered(plain: Array, sigma: float, seed: int = 0) -> Array:
    """What a guess at distance sigma from the inverse matrix makes of a sample.

    >>> sample = np.ones((3, 64, 64))
    >>> error = np.linalg.norm(recovered(sample, 0.5) - sample) / np.linalg.norm(sample)
    >>> bool(abs(error - 0.5) < 0.01)
    True

    Args:
        plain: the sample, of any shape.
        sigma: the distance, from 0 to 1.
        seed: of the guess.
    """
    angle = 2 * math.asin(sigma / 2)
    noise = torch.randn(plain.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    length = float(np.linalg.norm(plain)) / math.sqrt(plain.size)
    guessed: Array = math.cos(angle) * plain + math.sin(angle) * length * noise.numpy()
    return guessed


def pictures(side: int, sigmas: Sequence[float]) -> dict[str, list[Array]]:
    """The cat as recovered under each sigma, in three ways, as pixels."""
    cat = photograph(CAT, side)
    look = own_normalisation(cat)
    plain = look.apply(cat[np.newaxis])[0].astype(np.float64)
    of_pixels = [recovered(cat, sigma) for sigma in sigmas]
    of_plain = [look.undo(recovered(plain, sigma)[np.newaxis])[0] for sigma in sigmas]
    cleaned = [_denoised(one, cat, sigma) for one, sigma in zip(of_pixels, sigmas, strict=True)]
    return {
        PIXELS: [np.clip(one, 0, 1) for one in of_pixels],
        NORMALISED: [np.clip(one, 0, 1) for one in of_plain],
        DENOISED: cleaned,
    }


def measure(request: Request) -> Result:
    """How near the recovered cats are to the photograph."""
    return request.store.piece(("figure-sigma", request.preset), partial(_measured, SIDES[request.preset]))


def _measured(side: int, sigmas: Sequence[float] = SIGMAS) -> Result:
    cat, shown = photograph(CAT, side), pictures(side, sigmas)
    rows = []
    for number, sigma in enumerate(sigmas):
        row: Result = {"sigma": sigma}
        error = np.linalg.norm(recovered(cat, sigma) - cat) / np.linalg.norm(cat)
        row["relative_error"] = round(float(error), 4)
        for way, images in shown.items():
            near = {"psnr": psnr(cat, images[number]), "ssim": likeness(cat, images[number])}
            row[way] = {name: round(value, 3) for name, value in near.items()}
        rows.append(row)
    return {"photograph": CAT, "side": side, "rows": rows}


def report(result: Result) -> str:
    """The same as a table in Markdown."""
    ways = {PIXELS: "pixels", NORMALISED: "normalised", DENOISED: "pixels, denoised"}
    heads = ["sigma", "relative error", *(f"{ways[way]}: PSNR, SSIM" for way in ways)]
    return markdown([heads, *([*_cells(row, ways)] for row in result["rows"])])


def _cells(row: Result, ways: Sequence[str] | dict[str, str]) -> Iterator[str]:
    yield f"{row['sigma']:g}"
    yield f"{row['relative_error']:.3f}"
    for way in ways:
        yield f"{row[way]['psnr']:.1f} dB, {row[way]['ssim']:.2f}"


def draw(result: Result) -> Figure:
    """A column for each sigma, a row for each way, and the photograph beside them."""
    rows = result["rows"]
    shown = pictures(result["side"], [row["sigma"] for row in rows])
    with figure_style():
        figure = Figure(figsize=(1.3 * (1 + len(rows)), 5.1), layout="constrained")
        grid = figure.subplots(len(shown), 1 + len(rows))
        figure.suptitle(
            "A cat recovered at the paper's privacy reservation limit sigma",
            fontsize=10.5, fontweight="bold", x=0.01, ha="left",
        )  # fmt: skip
        for line, (way, images) in zip(grid, shown.items(), strict=True):
            line[0].axis("off")
            line[0].text(
                0.5, 0.5, IN_WORDS[way], ha="center", va="center", fontsize=8.5, transform=line[0].transAxes
            )
            for axes, image, row in zip(line[1:], images, rows, strict=True):
                title = f"sigma = {row['sigma']:g}" if way == PIXELS else ""
                show_image(axes, image, title, f"{row[way]['psnr']:.1f} dB")
        figure.supxlabel(
            "Below each: peak signal-to-noise ratio against the photograph. 0.5 is the value of the "
            "paper's example; 1 is the most that its bound covers.",
            fontsize=8,
        )
    return figure


def _denoised(noisy: Array, cat: Array, sigma: float) -> Array:
    """What a denoiser makes of it, after the contrast that the guess lost is put back."""
    angle = 2 * math.asin(sigma / 2)
    deviation = math.tan(angle) * float(np.linalg.norm(cat)) / math.sqrt(cat.size)
    cleaned: Array = denoise_nl_means(
        noisy / math.cos(angle), patch_size=5, patch_distance=9, h=0.6 * deviation, sigma=deviation,
        fast_mode=True, channel_axis=0,
    )  # fmt: skip
    return np.clip(cleaned, 0, 1)


EXPERIMENT = Experiment(
    summary="a cat recovered at the paper's privacy reservation limit",
    measure=measure,
    report=report,
    drawings={"": Drawing(draw, ALT)},
    presets=("cpu", "tiny"),
    takes=(),
)
