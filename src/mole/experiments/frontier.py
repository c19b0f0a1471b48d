"""The frontier: how much accuracy is left when each image may tell so many bits, for four kinds of fronts.

A front turns images into features; these are clipped and get noise, as in a protected delivery; a head is
learned from noisy features of the training images and scored on clean features of the test images, as in
inference at home. Beside the scores stand the bound on identification and how often the best attacker
identified an image. Last, a decoder tries to rebuild images.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mole._version import __version__
from mole.errors import ParameterError
from mole.experiments.channel_scores import (
    CANDIDATES,
    Features,
    Parts,
    adapted_accuracy,
    attacked,
    best_head,
    score,
    scored,
    spread_of,
)  # fmt: skip
from mole.experiments.compared_fronts import (
    EPOCHS,
    Compared,
    check_large_network,
    large_network,
    pixels,
    trained_on_a_part,
)  # fmt: skip
from mole.experiments.experiment import Drawing, Experiment, Request, Say, say_nothing
from mole.experiments.feature_store import FeatureStore
from mole.experiments.frontier_report import ALT, bits_in_words, drawing, table
from mole.experiments.image_sets import ImageSet, Part, all_of, preparation_for, shape_of
from mole.experiments.learned_decoder import inversion
from mole.protection import Certificate
from mole.protection.front_file import read_front
from mole.protection.head import Head
from mole.sources.source import Source


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes:
        bits: what a row may tell; None is without noise.
        draws: of noise, each with a head of its own.
        dimensions: features of the two networks.
        with_first_layer: whether the small network's first layer is a way of its own.
        share: of the training images, how many are public for the fronts that learn from the data itself.
        epochs: for which those learn.
        sizes: further numbers of training images, for the last front.
        decoded: bits at which a decoder tries its hand.
        decoder_images, decoder_epochs: what it learns from, and how long.
        attacked: how many test images it rebuilds.
    """

    bits: Sequence[float | None] = (None, 8.0, 2.0, 1.0, 0.5)
    draws: int = 3
    dimensions: int = 128
    with_first_layer: bool = True
    share: float = 0.2
    epochs: int = EPOCHS
    sizes: Sequence[int] = (5_000, 20_000)
    decoded: Sequence[float | None] = (None, 8.0, 1.0)
    decoder_images: int = 15_000
    decoder_epochs: int = 8
    attacked: int = 1_000


FULL = Effort()
TINY = Effort(
    bits=(None, 1.0), draws=1, dimensions=16, with_first_layer=False, epochs=1, sizes=(), decoded=(1.0,),
    decoder_images=500, decoder_epochs=2, attacked=100,
)  # fmt: skip
TINY_IMAGES, TINY_TESTS = 1_000, 500


def frontier(
    sets: Sequence[ImageSet],
    public: Source,
    store: FeatureStore,
    *,
    front: Path | None = None,
    with_large: bool = True,
    effort: Effort = FULL,
    say: Say = say_nothing,
) -> dict[str, Any]:
    """Measure it on some sets of images; a result for JSON. Sets that are finished are kept, too.

    Args:
        sets: the images.
        public: other images, of which anybody can have as many, from another source.
        store: keeps fronts and features.
        front: the developer's own front, in the place of one made from EfficientNet-Lite0.
        with_large: whether there is that front at all.
        effort: how much is measured.
        say: told every result.
    """
    facts = {"draws": effort.draws, "candidates": CANDIDATES, "front": front.name if front else None}
    digest = read_front(front).digest if front else with_large
    found = []
    for images in sets:
        about = (__version__, images.about, all_of(public).origin, digest, effort)
        one = _Frontier(images, public, store, effort, say)
        found.append(store.piece(about, functools.partial(one.run, front, with_large)))
    return {**facts, "sets": found}


def measure(request: Request) -> dict[str, Any]:
    """The frontier of the images of a request; the tiny one has no network with ImageNet's weights."""
    if request.public is None:
        raise ParameterError("a frontier needs public images, to fit fronts on")
    is_tiny = request.preset == "tiny"
    if request.front is None and not is_tiny:
        check_large_network()  # before anything is written
    sets = [one.first(TINY_IMAGES, TINY_TESTS) if is_tiny else one for one in request.data]
    return frontier(
        sets,
        request.public,
        FeatureStore(request.store.folder, request.progress),
        front=request.front,
        with_large=not is_tiny,
        effort=replace(TINY if is_tiny else FULL, draws=request.seeds),
        say=request.say,
    )


EXPERIMENT = Experiment(
    summary="what protection costs in accuracy, for four fronts",
    measure=measure,
    report=table,
    drawings={"": Drawing(drawing, ALT)},
    presets=("cpu", "tiny"),
    takes=("data", "public", "front", "seeds"),
    needs_public=True,
)


@functools.cache
def _at_most(certificate: Certificate) -> float:
    return certificate.identification(CANDIDATES)


@dataclass(frozen=True)
class _Frontier:
    """The frontier of one set of images."""

    images: ImageSet
    public: Source
    store: FeatureStore
    effort: Effort
    say: Say

    def run(self, front: Path | None, with_large: bool) -> dict[str, Any]:
        images, effort = self.images, self.effort
        other, shape = all_of(self.public), shape_of(self.public)
        own = trained_on_a_part(
            self.store, images, effort.share, effort.dimensions, effort.epochs,
            with_first_layer=effort.with_first_layer,
        )  # fmt: skip
        ways = [pixels(self.store, images, other, shape), *own]
        if front is not None:
            ways.append(Compared(front.name, read_front(front), images.train))
        elif with_large:
            ways.append(large_network(self.store, images, other, shape, effort.dimensions))
        public = images.train.cut(0, len(images.train) - len(own[-1].private))
        return {
            "images": images.name,
            "classes": images.classes,
            "test_images": len(images.test),
            "ways": [self._way(way, is_last=way is ways[-1]) for way in ways],
            "public_part_alone": self._alone(own[-1], public),
            "validation_alone": images.validation and self._alone(ways[-1], images.validation),
            "decoder": self._decoder(ways[-1]),
        }

    def _way(self, way: Compared, *, is_last: bool) -> dict[str, Any]:
        parts = self._parts(way)
        told = f"{self.images.name}, {way.name}"
        found: dict[str, Any] = {
            "way": way.name,
            "features": way.front.dimensions,
            "train_images": len(way.private),
            "rows": [self._row(parts, bits, told) for bits in self.effort.bits],
        }
        if is_last:
            sizes = [size for size in self.effort.sizes if size < len(way.private)]
            found["fewer_images"] = [self._fewer(parts, size, told) for size in sizes]
        return found

    def _fewer(self, parts: Parts, size: int, told: str) -> dict[str, Any]:
        some = Parts(parts.train.first(size), parts.test, parts.validation, parts.classes)
        rows = [self._row(some, bits, f"{told}, {size:,} images") for bits in self.effort.bits]
        return {"train_images": size, "rows": rows}

    def _row(self, parts: Parts, bits: float | None, told: str) -> dict[str, Any]:
        """Scores at some bits, over several draws of noise."""
        features = parts.train.rows.shape[1]
        certificate = None if bits is None else Certificate.for_bits(bits, features=features)
        draws = [score(parts, certificate) for _ in range(1 if certificate is None else self.effort.draws)]
        row: dict[str, Any] = {"bits": bits}
        if certificate is not None:
            row |= {
                "sigma": round(certificate.sigma, 4),
                "maximal_leakage": round(certificate.maximal_leakage, 3),
            }
            row["epsilon"] = round(certificate.epsilon(), 3)
            row["identified_at_most"] = round(_at_most(certificate), 4)
            row["identifications_tried"] = len(draws) * attacked(len(parts.train.rows))
        row |= {name: spread_of([draw[name] for draw in draws]) for name in draws[0]}
        area = f", AUC {row['auc']['mean']:.3f}" if "auc" in row else ""
        self.say(f"{told}, {bits_in_words(bits)}: {100 * row['accuracy']['mean']:.1f} %{area}")
        return row

    def _parts(self, way: Compared) -> Parts:
        images = self.images
        kept = (way.private, images.test, *([] if images.validation is None else [images.validation]))
        found = [
            Features.of(self.store.features(way.front, part, images.shape), part.labels) for part in kept
        ]
        return Parts(found[0], found[1], found[2] if len(found) > 2 else None, images.classes)

    def _alone(self, way: Compared, part: Part) -> dict[str, float]:
        """What some images give without any delivery: their clean features and labels."""
        images = self.images
        own, test = (
            Features.of(self.store.features(way.front, one, images.shape), one.labels)
            for one in (part, images.test)
        )
        answers = scored(best_head(own, 0.0, images.classes), test)
        scores = {"accuracy": answers.accuracy, **({} if answers.auc is None else {"auc": answers.auc})}
        if images.classes == 2:  # adapted from a head that knows nothing
            nothing = Head(np.zeros((2, way.front.dimensions)), np.zeros(2))
            scores["adapted_accuracy"] = adapted_accuracy(nothing, own, test)
        return {"images": len(part), **{name: round(value, 4) for name, value in scores.items()}}

    def _decoder(self, way: Compared) -> list[dict[str, Any]]:
        """A decoder that learns from the training images, and rebuilds test images."""
        images, effort = self.images, self.effort
        parts = (
            images.train.cut(0, effort.decoder_images), images.test.cut(0, effort.attacked),
        )  # fmt: skip
        features = [
            Features.of(self.store.features(way.front, part, images.shape), part.labels) for part in parts
        ]
        plain = [
            part.plain(preparation_for(images.shape, images.shape)).astype(np.float32) for part in parts
        ]
        found = []
        for bits in effort.decoded:
            row = inversion(
                features[0], plain[0], features[1], plain[1], bits=bits, epochs=effort.decoder_epochs
            )
            self.say(
                f"{images.name}, decoder, {bits_in_words(bits)}: "
                f"{row['decoder_db']} dB, and the mean image {row['mean_image_db']} dB"
            )
            found.append(row)
        return found
