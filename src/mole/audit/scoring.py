"""The scorer: it alone sees the truth, and says how much of it an attack found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from mole.attacks.tools.attack import Finding, UpTo
from mole.scheme.filling import without_filling
from mole.scheme.likeness import best_map, correlations
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape, unroll

MAX_PSNR = 150.0  # what is reported of images without any difference
SAME_IMAGE, NEARLY = 0.9996, 0.1  # correlation of one image with itself, rounded; its error over its length
MIN_SIDE = 7  # of the windows in which SSIM compares


@dataclass(frozen=True, eq=False)
class Truth:
    """What the attacker wants to know.

    Attributes:
        plain: plain samples in the order in which they were delivered, (n, *input_shape), their tiles too.
        normalisation: what was applied to their pixels, or None.
        channel_order: the secret order of channels, or None where there is no layer.
        members: which of the candidates were delivered, or None where nobody asks.
        public: the images that an attacker has, for links between them and rows ...
        elsewhere: ... and the plain images behind another delivery, or None where there is none.
        plain_shape: shape of images without the zeros that fill their tiles; None where there are none.
        put_back: puts shuffled tiles where they belong; None where none are shuffled.
    """

    plain: Array
    normalisation: Normalisation | None = None
    channel_order: npt.NDArray[np.intp] | None = None
    members: npt.NDArray[np.bool_] | None = None
    public: Array | None = None
    elsewhere: Array | None = None
    plain_shape: Shape | None = None
    put_back: Callable[[Array], Array] | None = None

    def images(self, samples: Array) -> Array:
        """Samples as people know them: every tile in its place, without the zeros that fill the last."""
        return self.cut(samples if self.put_back is None else self.put_back(samples))

    def cut(self, samples: Array) -> Array:
        """Samples without the zeros that fill their tiles, which are nobody's image."""
        return samples if self.plain_shape is None else without_filling(samples, self.plain_shape)

    def pixels(self, plain: Array) -> Array:
        """Samples on the scale of pixels, 0 to 1."""
        values = plain if self.normalisation is None else self.normalisation.undo(plain)
        return np.clip(values, 0, 1)


@dataclass(frozen=True)
class Score:
    """How much of the truth an attack found; None where it did not try.

    Attributes:
        psnr: peak signal-to-noise ratio in dB, the mean over images: above 30 is a good copy.
        ssim: structural similarity, the mean over images: 1 is a perfect copy.
        correlation: of rebuilt with original images, the mean over images.
        rmse: root mean square error, over the data's standard deviation.
        reidentified: share of rebuilt images that are nearest to their own original ...
        among: ... among so many.
        channels: share of channels put in their right place.
        best_map: correlation of the best single picture with the grey original, the mean over images.
        components: |correlation| of each claimed component with the true one.
        neighbours: share of samples whose nearest neighbour was told right ...
        distance_correlation: ... and the correlation of claimed with true distances.
        linked: share of the samples that stand elsewhere as well which were linked to themselves there ...
        linkable: ... of so many.
        membership: chance that an image which was delivered is ranked before one which was not.
    """

    psnr: float | None = None
    ssim: float | None = None
    correlation: float | None = None
    rmse: float | None = None
    reidentified: float | None = None
    among: int | None = None
    channels: float | None = None
    best_map: float | None = None
    components: tuple[float, ...] | None = None
    neighbours: float | None = None
    distance_correlation: float | None = None
    linked: float | None = None
    linkable: int | None = None
    membership: float | None = None


def score(finding: Finding, truth: Truth) -> Score:
    """Compare what an attack found with the truth."""
    images: dict[str, Any] = {} if finding.images is None else _image_scores(finding, truth)
    return Score(
        **images,
        channels=_channels(finding, truth),
        best_map=_best_map(finding, truth),
        components=_components(finding, truth),
        membership=_membership(finding, truth),
        **_distance_scores(finding, truth),
        **_link_scores(finding, truth),
    )


def aligned(finding: Finding, truth: Truth) -> Array:
    """Rebuilt images with what the attack left open filled in: the best an onlooker could make of them."""
    images = truth.images(np.asarray(finding.images, np.float64))
    plain = truth.images(truth.plain[: len(images)]).astype(np.float64)
    if finding.up_to == UpTo.COLOURS:
        return np.moveaxis(_fitted(np.moveaxis(images, 1, -1), np.moveaxis(plain, 1, -1)), -1, 1)
    if finding.up_to == UpTo.CONTRAST:
        fitted: Array = _fitted(images[..., np.newaxis], plain[..., np.newaxis])[..., 0]
        return fitted
    return images


def _fitted(values: Array, wanted: Array) -> Array:
    """The affine map of the last axis, one for all samples, that comes nearest to what is wanted."""
    flat = values.reshape(-1, values.shape[-1])
    design = np.hstack([flat, np.ones((len(flat), 1))])
    target = wanted.reshape(-1, wanted.shape[-1])
    solution = np.linalg.lstsq(design.T @ design, design.T @ target, rcond=1e-12)[0]
    fitted: Array = (design @ solution).reshape(wanted.shape)
    return fitted


def _image_scores(finding: Finding, truth: Truth) -> dict[str, Any]:
    rebuilt = aligned(finding, truth)
    plain = truth.images(truth.plain[: len(rebuilt)])
    seen, original = truth.pixels(rebuilt), truth.pixels(plain).astype(np.float64)
    pairs = correlations(unroll(rebuilt), unroll(plain))
    both = list(zip(original, seen, strict=True))
    known = [value for pair in both if (value := _ssim(*pair)) is not None]
    return {
        "psnr": float(np.mean([psnr(*pair) for pair in both])),
        "correlation": float(np.diag(pairs).mean()),
        "rmse": float(np.sqrt(np.square(rebuilt - plain).mean()) / max(plain.std(), 1e-12)),
        "reidentified": float((pairs.argmax(axis=1) == np.arange(len(pairs))).mean()),
        "among": len(pairs),
        **({"ssim": float(np.mean(known))} if known else {}),
    }


def psnr(original: Array, seen: Array) -> float:
    """Peak signal-to-noise ratio of pixels between 0 and 1, in dB."""
    with np.errstate(divide="ignore"):  # equal images have an infinite one
        return min(float(peak_signal_noise_ratio(original, seen, data_range=1.0)), MAX_PSNR)


def _ssim(one: Array, other: Array) -> float | None:
    """Structural similarity of two images, (channels, height, width); None for what is not an image."""
    if one.ndim != 3 or min(one.shape[1:]) < MIN_SIDE:
        return None
    return float(structural_similarity(one, other, channel_axis=0, data_range=1.0))


def _channels(finding: Finding, truth: Truth) -> float | None:
    if finding.channel_order is None or truth.channel_order is None:
        return None
    return float((finding.channel_order == truth.channel_order).mean())


def _best_map(finding: Finding, truth: Truth) -> float | None:
    """How well the best single map shows the grey image; None where maps are not pictures."""
    maps = finding.maps
    if maps is None:
        return None
    return best_map(maps, truth.cut(truth.plain[: len(maps)]))


def _components(finding: Finding, truth: Truth) -> tuple[float, ...] | None:
    if finding.coefficients is None or finding.directions is None:
        return None
    count = min(len(finding.coefficients), len(truth.plain))
    true = unroll(truth.plain[:count]) @ finding.directions.T
    pairs = correlations(finding.coefficients[:count].T, true.T)
    return tuple(float(value) for value in np.abs(np.diag(pairs)))


def _distance_scores(finding: Finding, truth: Truth) -> dict[str, Any]:
    if finding.distances is None:
        return {}
    claimed = finding.distances
    plain = unroll(truth.plain[: len(claimed)])
    true = cdist(plain, plain)
    apart = ~np.eye(len(true), dtype=bool)
    pair = correlations(claimed[apart][np.newaxis], true[apart][np.newaxis])
    nearest = [np.where(apart, table, np.inf).argmin(axis=1) for table in (claimed, true)]
    return {
        "distance_correlation": float(pair[0, 0]),
        "neighbours": float((nearest[0] == nearest[1]).mean()),
    }


def same_images(plain: Array, others: Array) -> npt.NDArray[np.intp]:
    """For each sample the other that is the same image but for rounding, or -1: (n,)."""
    pairs = correlations(unroll(plain), unroll(others))
    nearest = pairs.argmax(axis=1)
    return np.where(pairs[np.arange(len(pairs)), nearest] >= SAME_IMAGE, nearest, -1)


def _link_scores(finding: Finding, truth: Truth) -> dict[str, Any]:
    others = truth.elsewhere if finding.links_to == "elsewhere" else truth.public
    if finding.links is None or others is None:
        return {}
    true = same_images(truth.plain, others)
    claimed = np.full(len(true), -1)
    told = finding.links[finding.links[:, 0] < len(true)]
    claimed[told[:, 0]] = told[:, 1]
    there = np.flatnonzero(true >= 0)
    if not len(there):
        return {}
    right = same_rows(unroll(others[claimed[there]]), unroll(truth.plain[there])) & (claimed[there] >= 0)
    return {"linked": float(right.mean()), "linkable": len(there)}


def same_rows(some: Array, others: Array) -> npt.NDArray[np.bool_]:
    """Which rows are the same image as those in their place, but for rounding."""
    lengths = np.maximum(np.linalg.norm(others, axis=1), 1e-12)
    return np.asarray(np.linalg.norm(some - others, axis=1) <= NEARLY * lengths)


def _membership(finding: Finding, truth: Truth) -> float | None:
    """The area under the curve of right against false alarms; a half is chance."""
    if (
        finding.membership is None
        or truth.members is None
        or truth.members.all()
        or not truth.members.any()
    ):
        return None
    inside, outside = finding.membership[truth.members], finding.membership[~truth.members]
    apart = inside[:, np.newaxis] - outside
    return float((apart > 0).mean() + (apart == 0).mean() / 2)
