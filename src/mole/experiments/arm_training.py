"""Arms: ways to train one network, that differ in what it gets and in where its first layer comes from.

Everything else is the same in all arms of a seed: images, their order, the weights that other layers start
from. So arms are compared seed by seed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from mole.experiments.image_sets import ImageSet, Part, preparation_for
from mole.experiments.pieces import PieceStore, digest_of
from mole.progress import Progress, no_progress
from mole.provider.keys.key import MorphKey, augment, morph
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.augmenting import build_augmented_layer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape
from mole.sources.source import Labels
from mole.torch import ResumeFile, attach, evaluate, train
from mole.torch.export import export_first_layer
from mole.torch.learning_rules import StepDecay
from mole.torch.networks import vgg16

Arm = Literal["plain", "augmented", "without", "random", "no shuffle", "frozen"]
SIDE = 32  # of all images: what VGG-16 is built for here, and a core of which takes seconds
MEAN, STD = 0.5, 0.25  # of pixels from 0 to 1, about
MANY_CLASSES = (
    20  # with more than so many, each has few images, and takes longer to be told from the others
)
RECIPE = 1  # changes when arms are trained in another way than before


@dataclass(frozen=True)
class Budget:
    """How much each training costs, and how it goes.

    Attributes:
        narrower: by which factor convolutions of VGG-16 are narrower than the paper's.
        epochs, batch, learning_rate: of each training.
        decay: SGD whose learning rate falls in steps; None for AdamW and one cycle.
        images, tests: how many images of each split are used at most, spread evenly; None for all.
    """

    narrower: int
    epochs: int
    learning_rate: float
    batch: int = 64
    decay: StepDecay | None = None
    images: int | None = None
    tests: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """For the result."""
        return {"network": "VGG-16", **asdict(self), "kappa": 1, "core": "orthogonal", "dropout": 0.5}


@dataclass(frozen=True)
class Lesson:
    """What a network learns from and is scored on, and in which shape.

    Attributes:
        train: images to learn from.
        test: images to be scored on; None where only the first layer is wanted.
        stored: shape of the images as they are.
        channels: of the network's input.
        classes: how many there are.
    """

    train: Part
    test: Part | None
    stored: Shape
    channels: int
    classes: int

    @classmethod
    def of(cls, images: ImageSet) -> "Lesson":
        """A set of images, in its own colours."""
        return cls(images.train, images.test, images.shape, images.shape[0], images.classes)

    @property
    def shape(self) -> Shape:
        """What the network takes."""
        return (self.channels, SIDE, SIDE)

    @property
    def about(self) -> tuple[object, ...]:
        """What tells it from other lessons."""
        parts = (self.train, *([] if self.test is None else [self.test]))
        return (*((part.origin, part.start, part.stop) for part in parts), self.channels, self.classes)

    def steps(self, budget: Budget) -> int:
        """Batches of a training."""
        return budget.epochs * -(-_count(self.train, budget.images) // budget.batch)

    def plain(self, part: Part, most: int | None) -> tuple[Array, Labels]:
        """Plain data of some images of a part, spread evenly over it, and their labels."""
        count = _count(part, most)
        chosen = np.arange(count) * len(part) // count
        normalisation = Normalisation.of_channels(MEAN, STD, self.channels)
        prepared = preparation_for(self.shape, self.stored, normalisation)
        rows = prepared.plain_samples(part.split, (part.start + chosen).tolist())
        return rows, np.asarray(part.labels)[chosen]


@dataclass(frozen=True)
class Budgets:
    """What a training costs, by what it has to learn.

    Attributes:
        usual: for few classes, and for many too where there is no other.
        many: for more than twenty classes.
    """

    usual: Budget
    many: Budget | None = None

    def of(self, lesson: Lesson) -> Budget:
        """The budget of a lesson."""
        return self.many if self.many and lesson.classes > MANY_CLASSES else self.usual


@dataclass(frozen=True)
class Training:
    """One training: of an arm, with a seed.

    Attributes:
        lesson: what is learned.
        budget: how much.
        arm: in which way.
        seed: decides the network's first weights, the order of images, and the key.
        before: the training that the first layer comes from, where the arm has one.
    """

    lesson: Lesson
    budget: Budget
    arm: Arm
    seed: int
    before: "Training | None" = None

    @property
    def facts(self) -> tuple[object, ...]:
        """All that its result depends on."""
        before = None if self.before is None else self.before.facts
        return (RECIPE, self.lesson.about, self.budget, self.arm, self.seed, before)

    def piece(self, store: PieceStore, progress: Progress = no_progress) -> dict[str, Any]:
        """Its scores, and its first layer where that was trained; from the store if they are there."""
        resume = ResumeFile(store.path_of(self.facts, ".unfinished"), {"facts": digest_of(self.facts)})

        def make() -> dict[str, Any]:
            torch.manual_seed(self.seed)
            network = vgg16(self.lesson.shape, self.lesson.classes, narrower=self.budget.narrower)
            before = None if self.before is None else self.before.piece(store, progress)
            layer = None if before is None else read_layer(before, self.lesson.shape)
            change = self.prepared(network, layer)
            train(
                network, self._data(self.lesson.train, self.budget.images, change),
                epochs=self.budget.epochs, batch_size=self.budget.batch,
                learning_rate=self.budget.learning_rate, decay=self.budget.decay,
                seed=self.seed, resume_file=replace(resume, replace=True), progress=progress,
            )  # fmt: skip
            return {**self._scores(network, change), **_layer_facts(self.arm, network, self.lesson.shape)}

        found = store.piece(self.facts, make)
        resume.remove()  # not before the scores are kept
        return found

    def prepared(self, network: nn.Module, layer: FirstLayer | None) -> Callable[[Array], Array]:
        """Put an arm's first layer into a network; returns what is done to plain data for it."""
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # quicker by a third
        if self.arm == "plain":
            return _as_it_is
        if self.arm == "frozen":
            freeze(network, layer)
            return _as_it_is
        key = key_of(self.lesson.shape, self.seed)
        if self.arm != "without":
            if layer is None:  # what the network starts with, by chance
                layer = export_first_layer(network, self.lesson.shape)
            attach(network, augmented(layer, key, shuffled=self.arm != "no shuffle"))
        return lambda plain: morph(plain, key)

    def _data(self, part: Part, most: int | None, change: Callable[[Array], Array]) -> TensorDataset:
        plain, labels = self.lesson.plain(part, most)
        return TensorDataset(torch.from_numpy(change(plain)), torch.from_numpy(labels))

    def _scores(self, network: nn.Module, change: Callable[[Array], Array]) -> dict[str, float | None]:
        if self.lesson.test is None:
            return {}
        score = evaluate(network, self._data(self.lesson.test, self.budget.tests, change))
        return {"accuracy": score.accuracy, "auc": score.auc}


def key_of(shape: Shape, seed: int) -> MorphKey:
    """The key of a seed, with kappa = 1: no secret, as the images are public and results have to repeat."""
    return MorphKey.generate(shape, insecure_seed=hashlib.sha256(f"experiment {seed}".encode()).digest())


def augmented(layer: FirstLayer, key: MorphKey, *, shuffled: bool = True) -> AugmentedLayer:
    """An augmented layer, with its channels in the key's order or in the developer's own."""
    if shuffled:
        return augment(layer, key)
    order = np.arange(layer.channels)
    return build_augmented_layer(layer, key.morphing, order, key_fingerprint=key.fingerprint)


def freeze(network: nn.Module, layer: FirstLayer | None) -> None:
    """Give a network's first convolution the weights of a layer, to keep."""
    first = next(module for module in network.modules() if isinstance(module, nn.Conv2d))
    if layer is not None:
        with torch.no_grad():
            first.weight.copy_(_tensor(layer.weight))
            if first.bias is not None and layer.bias is not None:
                first.bias.copy_(_tensor(layer.bias))
    first.requires_grad_(requires_grad=False)


def _layer_facts(arm: Arm, network: nn.Module, shape: Shape) -> dict[str, Any]:
    """The first layer of a network that was trained on plain data, for other trainings to begin with."""
    if arm != "plain":
        return {}
    layer = export_first_layer(network, shape)
    bias = None if layer.bias is None else layer.bias.tolist()
    return {"first_layer": {"weight": layer.weight.tolist(), "bias": bias}}


def read_layer(found: dict[str, Any], shape: Shape) -> FirstLayer:
    """The first layer that a training left."""
    weight, bias = (found["first_layer"][name] for name in ("weight", "bias"))
    numbers = None if bias is None else np.array(bias, np.float32)
    return FirstLayer.conv(np.array(weight, np.float32), numbers, input_shape=shape, padding=1)


def _tensor(numbers: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(numbers, np.float32))


def _as_it_is(plain: Array) -> Array:
    return plain


def _count(part: Part, most: int | None) -> int:
    return len(part) if most is None else min(most, len(part))
