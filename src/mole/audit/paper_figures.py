"""The paper's figures on a colour photograph: kappa against likeness, sigma against recovered pictures.

They are in the paper's appendix B. Neither needs a key: the cores of the first are made up for the
occasion, and the second is about a core that somebody got nearly right.

They are drawn as SVG that can stand inside a page: small, the same on every run, light or dark. The page's
own colours show through: everything is drawn in `currentColor`, the line in `--accent`.
"""

import io
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from skimage import data
from skimage.metrics import structural_similarity
from skimage.transform import resize

from mole.audit.pictures import picture
from mole.audit.report import Plot
from mole.errors import ParameterError
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Morphing, orthogonal_core
from mole.scheme.shapes import Array, block_size, element_count

CORE_SIDES = (1152, 288, 96, 48, 24, 12, 6, 3, 2, 1)  # 1152: a core that is made in a blink
SIGMAS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
IN_THE_TABLE = "The numbers of this drawing are in the table below it."

# Stand-ins that are replaced by the page's colours after drawing: matplotlib knows no CSS.
INK, ACCENT = "#010203", "#040506"
STYLE: Any = {
    "svg.hashsalt": "mole",  # otherwise identifiers are random
    "svg.fonttype": "none",  # words stay words, in the page's own font
    "font.size": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
UNWANTED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)
FONTS = re.compile(r" *font-family: [^;\"]*;?")
ANCHOR = re.compile(r'(?:href="#|url\(#)([^")]+)')
EMPTY = re.compile(r"<(g|defs)>\s*</\1>|<g/>")

Morph = Callable[[Array, int], Array]


@cache  # they say nothing of a delivery, so that they are the same on every page
def paper_figures(seed: int = 0) -> tuple[Plot, ...]:
    """Both figures, on the photograph that comes with scikit-image."""
    rng, photo = np.random.default_rng(seed), photograph()
    return kappa_against_ssim(with_new_cores(rng), photo), sigma_against_recovered(photo, rng)


def photograph(side: int = 96) -> Array:
    """A cat in colour (Chelsea, in the public domain), (3, side, side), pixels between 0 and 1.

    >>> photograph(32).shape
    (3, 32, 32)
    """
    square = np.asarray(data.chelsea())[:, 75:375] / 255.0
    small: Array = np.moveaxis(resize(square, (side, side), anti_aliasing=True), -1, 0)
    return small


def with_new_cores(rng: np.random.Generator) -> Morph:
    """A way to morph one image with any kappa, by an orthogonal core made up on the spot."""

    def morph(image: Array, kappa: int) -> Array:
        layout = Layout.of("rows", image.shape, kappa)
        core = orthogonal_core(rng.standard_normal((layout.block, layout.block)))
        (morphed,) = Morphing(layout, core).morph(image[np.newaxis])
        return np.asarray(morphed)

    return morph


def default_kappas(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The kappas that give the usual sides of a core for this shape.

    >>> default_kappas((3, 32, 32))
    (32, 64, 128, 256, 512, 1024, 1536, 3072)
    """
    elements = element_count(shape)
    return tuple(elements // side for side in CORE_SIDES if elements % side == 0)


def kappa_against_ssim(morph: Morph, photo: Array, kappas: Sequence[int] = (), draws: int = 5) -> Plot:
    """How alike a morphed picture and its original look, for one kappa after another.

    The photograph is centred before it is morphed, as networks expect. The morphed picture is shown with
    the original's brightness and contrast, or as its negative if that is more alike: what an eye could see
    at best.

    Args:
        morph: morphs one image, (3, height, width), with a kappa; asked again, it may use another core.
        photo: the image, pixels between 0 and 1.
        kappas: which; by default those with a core of 1152 rows down to 1.
        draws: how many calls the likeness is averaged over; the last is shown.
    """
    kappas = tuple(kappas) or default_kappas(photo.shape)
    centred = (photo - photo.mean()) / photo.std()
    seen = [[_most_alike(photo, morph(centred, kappa)) for _ in range(draws)] for kappa in kappas]
    shown = [many[-1][1] for many in seen]
    likeness = [float(np.mean([value for value, _ in many])) for many in seen]
    sides = [block_size(photo.shape, kappa) for kappa in kappas]
    title = "How alike morphed and original pictures look, for each kappa"
    words = (
        "Kappa is how many times the same core is used on one image: the larger kappa, the smaller the "
        f"core, and the cheaper the morphing. Here the likeness (SSIM) is {likeness[0]:.2f} with a core of "
        f"{_rows(sides[0])} and {likeness[-1]:.2f} with one of {_rows(sides[-1])}. A small likeness says "
        "that eyes recognise nothing. It does not say that a computation cannot get the image back."
    )
    return Plot(
        title=title, words=words,
        svg=line_plot(
            kappas, likeness, name="kappa", title=title, description=IN_THE_TABLE,
            x_label="kappa", y_label="likeness (SSIM)", logarithmic=True,
        ),
        columns=("kappa", "rows of the core", "likeness (SSIM)"),
        rows=tuple(
            (kappa, side, round(value, 4))
            for kappa, side, value in zip(kappas, sides, likeness, strict=True)
        ),
        pictures=(
            picture("The photograph", photo),
            *(
                picture(f"Morphed, kappa\u00a0=\u00a0{kappa:,}", image)
                for kappa, image in zip(kappas, shown, strict=True)
            ),
        ),
    )  # fmt: skip


def sigma_against_recovered(
    photo: Array, rng: np.random.Generator, sigmas: Sequence[float] = SIGMAS
) -> Plot:
    """What an attacker sees whose matrix is off by sigma (Theorem 1's privacy reservation)."""
    recovered = [np.clip(off_by(photo, sigma, rng), 0, 1) for sigma in sigmas]
    likeness = [ssim(photo, image) for image in recovered]
    title = "What is recovered with a matrix that is off by sigma"
    words = (
        "The paper counts an image as recovered when its relative error is at most sigma, and bounds the "
        "chance of guessing a matrix that good. Here is how alike such pictures are. The bound covers "
        "blind guessing only: an attack that computes need not guess."
    )
    return Plot(
        title=title, words=words,
        svg=line_plot(
            sigmas, likeness, name="sigma", title=title,
            description=IN_THE_TABLE,
            x_label="sigma", y_label="likeness (SSIM)",
        ),
        columns=("sigma", "likeness (SSIM)"),
        rows=tuple((sigma, round(value, 4)) for sigma, value in zip(sigmas, likeness, strict=True)),
        pictures=(
            picture("The photograph", photo),
            *(
                picture(f"Recovered, sigma\u00a0=\u00a0{sigma:g}, likeness {value:.2f}", image)
                for sigma, value, image in zip(sigmas, likeness, recovered, strict=True)
            ),
        ),
    )  # fmt: skip


def off_by(photo: Array, sigma: float, rng: np.random.Generator) -> Array:
    """An image unmorphed with a matrix G that is off by sigma, in the sense of Lemma 2 and its proof.

    M^-1 and G are points on a sphere, |M^-1 - G| = sigma times its radius, and G is otherwise as random as
    can be: G = cos(t) M^-1 + sin(t) U, with 2 sin(t / 2) = sigma and U a random matrix of the same norm at
    right angles to M^-1. So the image D comes back as D M G = cos(t) D + sin(t) D M U. For an orthogonal M,
    D M U are independent normal numbers with the root mean square of D, and that is how they are drawn: the
    matrix itself would have 764 million elements for a photograph of 96 x 96 pixels. How large an error is
    depends on what images are measured in: here pixels between 0 and 1, not centred.

    >>> grey = np.full((1, 64, 64), 0.5)
    >>> error = off_by(grey, 0.25, np.random.default_rng(0)) - grey
    >>> round(float(np.sqrt(np.mean(error**2)) / 0.5), 2)
    0.25
    """
    if not 0 <= sigma <= math.sqrt(2):
        raise ParameterError(f"sigma = {sigma} is further off than no knowledge at all: give 0 to 1.41")
    cosine = 1 - sigma**2 / 2
    sine = math.sqrt(1 - cosine**2)
    size = math.sqrt(float(np.mean(np.square(photo))))
    recovered: Array = cosine * photo + sine * size * rng.standard_normal(photo.shape)
    return recovered


def ssim(one: Array, other: Array) -> float:
    """Structural similarity of two images, (channels, height, width), pixels between 0 and 1."""
    return float(structural_similarity(one, other, channel_axis=0, data_range=1.0))


def _most_alike(photo: Array, values: Array) -> tuple[float, Array]:
    """The likeness, and values as a picture in a photograph's brightness and contrast, or its negative."""
    scaled = photo.std() * (values - values.mean()) / values.std()
    both = [np.clip(photo.mean() + sign * scaled, 0, 1) for sign in (1, -1)]
    return max(((ssim(photo, image), image) for image in both), key=lambda pair: pair[0])


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def line_plot(
    x: Sequence[float],
    y: Sequence[float],
    *,
    name: str,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
) -> str:
    """A line with a dot at every point, as one `<svg>` element.

    >>> svg = line_plot([1, 2], [0, 1], name="p", title="T", description="D", x_label="x", y_label="y")
    >>> svg[:16], "<title>T</title>" in svg, "<desc>D</desc>" in svg
    ('<svg role="img" ', True, True)

    Args:
        x: where the points are ...
        y: ... and how high.
        name: goes in front of every identifier, so that two drawings fit on one page.
        title: for those who cannot see it.
        description: more for them.
        x_label: of the lower axis.
        y_label: of the left axis.
        logarithmic: whether the x axis is logarithmic.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.0, 3.2), layout="constrained", facecolor="none")
        axes = figure.add_subplot(facecolor="none")
        axes.grid(color=INK, alpha=0.14, linewidth=0.8)
        axes.plot(x, y, color=ACCENT, linewidth=2.2, marker="o", markersize=6, clip_on=False, zorder=3)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=6)
        axes.set(xlabel=x_label, ylabel=y_label, ylim=(min(0.0, *y), 1.0))
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:,g}")
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=NO_METADATA)
    return _fit_for_a_page(file.getvalue(), name, title, description)


def _fit_for_a_page(svg: str, name: str, title: str, description: str) -> str:
    """Only the element itself: named, in the page's colours, without what would reach out of it."""
    body = UNWANTED.sub("", svg[svg.index("<svg") :])
    wanted = set(ANCHOR.findall(body))
    body = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in wanted else "", body)
    body = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", body)
    body = FONTS.sub("", body)
    body = body.replace(INK, "currentColor").replace(ACCENT, "var(--accent, currentColor)")
    while EMPTY.search(body):
        body = EMPTY.sub("", body)
    box = re.search(r'viewBox="[^"]*"', body)
    start = (
        f'<svg role="img" aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" {box[0] if box else ""}>'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    )
    return re.sub(r"\s*\n\s*", "\n", start + body[body.index(">") + 1 :]).strip()
