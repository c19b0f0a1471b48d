"""Makes a front: a network from images to a few features, for protected deliveries.

The backbone is any network, trained on public data. Its features are pooled, centred and projected to a few
directions, and brought to length 1: what the provider's clip then leaves as it is. All of it is fitted on
public images, and goes into one ONNX file.

With much noise little more than class means can be learned from a delivery, so the front has to make images
of one class alike. Where the classes of public images are known, directions in which images of one class
differ count less; an image and its mirror image can be made to have the same features.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mole.errors import ParameterError, ShapeError
from mole.progress import Progress, no_progress
from mole.protection.front_file import Front, front_metadata, read_front
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape, shape_text
from mole.torch.models import first_line
from mole.torch.onnx_writing import exporter, onnx_of, write_onnx

IMAGES_AT_ONCE = 64
SMALLEST = 1e-6  # share of the largest spread that a component is taken to have at least
AS_IF = 1.0  # added to each variance within classes, in units of their mean: they are not known well
TINY = 1e-30

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Projection:
    """What is done to pooled features: (features - mean) @ matrix, (D,) and (D, d)."""

    mean: npt.NDArray[np.float32]
    matrix: npt.NDArray[np.float32]

    @classmethod
    def fit(
        cls, features: Array, dimensions: int, labels: npt.NDArray[np.integer] | None = None
    ) -> "Projection":
        """A projection of public features, (n, D).

        Without labels: their first principal components, each divided by the square root of its spread
        (half-whitened). With labels: features are whitened by their spread within classes first, and the
        principal components are taken of what comes out, as they are.
        """
        count, width = features.shape
        if not 1 <= dimensions <= min(count - 1, width):
            raise ParameterError(
                f"{dimensions} features cannot be made from {width} of {count} public images: ask for "
                "fewer, or give more images"
            )
        mean = features.mean(axis=0, dtype=np.float64)
        centred = features.astype(np.float64) - mean
        before = np.eye(width) if labels is None else _alike_within_classes(centred, labels)
        centred = centred @ before
        variances, directions = np.linalg.eigh(centred.T @ centred / count)
        matrix = directions[:, ::-1][:, :dimensions]
        if labels is None:
            spread = np.sqrt(np.maximum(variances[::-1][:dimensions], SMALLEST**2 * variances[-1]))
            matrix = matrix / np.sqrt(spread)
        return cls(mean.astype(np.float32), (before @ matrix).astype(np.float32))


def _alike_within_classes(features: Floats, labels: npt.NDArray[np.integer]) -> Floats:
    """A matrix, (D, D), after which no direction varies much more than others within classes."""
    if labels.shape != features.shape[:1]:
        raise ShapeError(f"features {features.shape} and labels {labels.shape} do not go together")
    features, labels = features[labels >= 0], labels[labels >= 0]  # below zero: of no class
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2 or len(classes) == len(labels):
        raise ParameterError(
            f"{len(labels)} public images of {len(classes)} classes do not tell how images of one class "
            "differ: give some images each of two classes or more, or no labels"
        )
    number = np.searchsorted(classes, labels)
    sums = np.zeros((len(classes), features.shape[1]))
    np.add.at(sums, number, features)
    inside = features - (sums / counts[:, None])[number]
    variances, directions = np.linalg.eigh(inside.T @ inside / (len(labels) - len(classes)))
    variances = np.maximum(variances, 0.0)
    return np.asarray(directions / np.sqrt(variances + AS_IF * max(float(variances.mean()), TINY)))


class Mirrored(nn.Module):
    """Features of an image and of its mirror image, averaged: both have the same, at twice the work."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, images: Tensor) -> Tensor:
        """(b, c, h, w) to pooled features, (b, D)."""
        return (pooled(self.backbone(images)) + pooled(self.backbone(images.flip(-1)))) / 2


class FrontModule(nn.Module):
    """Backbone, pooling, projection, length 1."""

    mean: Tensor
    matrix: Tensor

    def __init__(self, backbone: nn.Module, projection: Projection) -> None:
        super().__init__()
        self.backbone = backbone
        self.register_buffer("mean", torch.from_numpy(projection.mean))
        self.register_buffer("matrix", torch.from_numpy(projection.matrix))

    def forward(self, images: Tensor) -> Tensor:
        """Features of images: (b, *input_shape) to (b, d), each row of length 1."""
        projected = (pooled(self.backbone(images)) - self.mean) @ self.matrix
        return nn.functional.normalize(projected, dim=1)


def pooled(output: Any) -> Tensor:
    """One row of features for each image, from whatever a backbone gives: (b, D).

    Maps and tokens are averaged. Of Hugging Face's outputs the pooled one is taken, the last hidden state,
    or the logits, whichever is there first.
    """
    names = ("pooler_output", "last_hidden_state", "logits")
    found = [output, *(getattr(output, name, None) for name in names)]
    features = next((one for one in found if isinstance(one, Tensor)), None)
    if features is None:
        raise ParameterError("the network gives no features that a front could use: give one that does")
    if features.ndim == 3:  # tokens, (b, tokens, D)
        return features.mean(dim=1)
    return features.flatten(2).mean(dim=2) if features.ndim > 3 else features.flatten(1)


class Images(Protocol):
    """An array of images, or what gives some of them at a time."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many there are, and the shape of one."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice) -> Array: ...


def make_front(
    backbone: nn.Module,
    images: Images,
    path: str | PathLike[str],
    *,
    dimensions: int = 128,
    labels: npt.NDArray[np.integer] | None = None,
    mirrored: bool = False,
    normalisation: Normalisation | None = None,
    progress: Progress = no_progress,
) -> Front:
    """Write a front, fitted on public images, and see that it gives what PyTorch gives.

        make_front(backbone, layer.plain(public_images), "front.onnx", dimensions=128)

    Args:
        backbone: a network that gives features: without its last layer, if it is a classifier.
        images: public images as the network takes them, normalised, (n, *input_shape).
        path: the ONNX file to write; one of that name is replaced.
        dimensions: how many features a row has.
        labels: classes of the images, (n,), if they are known; they need not be those of the provider.
        mirrored: average features over an image and its mirror image; running it takes twice as long.
        normalisation: what was done to the images, for the provider to do as well.
        progress: told how many images were seen.

    Raises:
        ParameterError: if there are too few images for so many features, or for their classes.
        ShapeError: if labels are not as many as images.
        MissingExtraError: without ONNX.
    """
    exporter("front")  # before the work
    if labels is not None and labels.shape != (len(images),):
        raise ShapeError(f"{len(images)} images and labels {labels.shape} do not go together")
    backbone = (Mirrored(backbone) if mirrored else backbone).eval()
    features = pooled_features(backbone, images, progress)
    module = FrontModule(backbone, Projection.fit(features, dimensions, labels)).eval()
    return save_front(module, images.shape[1:], path, normalisation=normalisation)


def without_last(network: nn.Module, input_shape: Shape) -> nn.Module:
    """A classifier without its last layer, so that it gives features: the layer becomes an identity.

    Raises:
        ParameterError: if what it gives is not what a Linear layer gave.
    """
    given: dict[str, Tensor] = {}
    linear = {name: part for name, part in network.named_modules() if isinstance(part, nn.Linear)}
    hooks = [
        part.register_forward_hook(lambda _, __, output, name=name: given.__setitem__(name, output))
        for name, part in linear.items()
    ]
    try:
        with torch.inference_mode():
            output = _run(network.eval(), torch.zeros(2, *input_shape))
    finally:
        for hook in hooks:
            hook.remove()
    logits = getattr(output, "logits", output)
    last = next((name for name, one in given.items() if one is logits), None)
    if not last:
        raise ParameterError(
            "the network does not end with a Linear layer that could be left out: give a factory that "
            "returns a network of features"
        )
    parent, _, name = last.rpartition(".")
    setattr(network.get_submodule(parent), name, nn.Identity())
    return network


def pooled_features(backbone: nn.Module, images: Images, progress: Progress = no_progress) -> Array:
    """Pooled features of images, (n, D), without noise or projection."""
    found = []
    with torch.inference_mode():
        for start in range(0, len(images), IMAGES_AT_ONCE):
            batch = torch.from_numpy(np.ascontiguousarray(images[start : start + IMAGES_AT_ONCE]))
            found.append(pooled(_run(backbone, batch)).float().numpy())
            progress(min(start + IMAGES_AT_ONCE, len(images)), len(images))
    return np.concatenate(found)


def save_front(
    module: nn.Module,
    input_shape: Shape,
    path: str | PathLike[str],
    *,
    normalisation: Normalisation | None = None,
) -> Front:
    """Write any module as a front: features of any shape, maps too, which are then clipped as a whole."""
    written = onnx_of(module, input_shape, "front")
    write_onnx(written, front_metadata(input_shape, normalisation), Path(path))
    return read_front(Path(path))


def _run(network: nn.Module, images: Tensor) -> Any:
    """What a network gives for images, or a sentence where it fails."""
    try:
        return network(images)
    except Exception as error:  # other people's code can fail in any way
        shape = shape_text(tuple(images.shape[1:]))
        raise ParameterError(
            f"the network does not run on images of {shape}: {first_line(error)}"
        ) from error
