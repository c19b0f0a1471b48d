"""What the methods of the paper's comparison give and give away, each measured on the same images.

The developer has public images: it trains a network on them, whose first layer goes to the provider. The
same small network then learns from plain data, from a delivery, and from features with noise; heads learn
from protected rows. All are scored on the same test images. Attackers get what each method hands over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import nn
from torch.utils.data import TensorDataset

from mole.experiments.attacked_deliveries import Images, delivered, random_layer, score_of, tried
from mole.experiments.channel_scores import CANDIDATES, Features, Parts, score, spread_of
from mole.experiments.compared_fronts import Compared, large_network
from mole.experiments.experiment import Request, Result
from mole.experiments.feature_store import FeatureStore
from mole.experiments.feature_transmission import Transmission
from mole.experiments.image_sets import ImageSet, Part, all_of, preparation_for, shape_of
from mole.experiments.photographs import own_normalisation
from mole.protection import Certificate
from mole.protection.front_file import Front
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment, morph
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array
from mole.sources.source import Labels, Source
from mole.storage.atomic import new_file
from mole.torch import attach, build_model, evaluate, export_first_layer, train
from mole.torch.front import make_front

NETWORK, RATE, BATCH = "small_vgg", 3e-3, 64
ATTACKERS = {"thief": "unknown-kernels", "developer": "channel-fingerprint", "injector": "known-image"}


@dataclass(frozen=True)
class Effort:
    """How much is done.

    Attributes:
        train, test: images of the data that are used.
        public: images that the developer has.
        attacked: images of a delivery that is attacked ...
        channels: ... for a first layer with so many; VGG-16 has 64 ...
        strangers: ... by strangers with these attacks, and by all others with theirs.
        epochs: for which networks learn.
        noises: of features, over their root mean square; None for no noise.
        bits: of protected rows; None for no noise.
        dimensions: of fronts.
        with_large: whether there is a front with ImageNet's weights as well.
    """

    train: int = 3000
    test: int = 2000
    public: int = 3000
    attacked: int = 2000
    channels: int = 64
    strangers: tuple[str, ...] = ("pca-matching", "block-statistics")
    epochs: int = 4
    noises: Sequence[float | None] = (None, 1.0, 4.0, 16.0)
    bits: Sequence[float | None] = (None, 8.0, 2.0, 1.0)
    dimensions: int = 128
    with_large: bool = True


TINY = Effort(
    train=300, test=100, public=300, attacked=300, channels=16, strangers=("pca-matching",), epochs=1,
    noises=(None, 4.0), bits=(None, 1.0), dimensions=16, with_large=False,
)  # fmt: skip


@dataclass(frozen=True)
class Methods:
    """Every method on one set of images; what takes long is kept."""

    request: Request
    images: ImageSet
    public: Source
    effort: Effort

    @property
    def facts(self) -> tuple[object, ...]:
        """What everything depends on."""
        return ("table1", self.images.about, all_of(self.public).origin, self.effort)

    @cached_property
    def look(self) -> Normalisation:
        """What brings public images to mean 0 and deviation 1."""
        pixels = self._others.plain(preparation_for(self.images.shape, shape_of(self.public)))
        return own_normalisation(np.moveaxis(pixels, 1, 0))

    @property
    def _others(self) -> Part:
        return all_of(self.public).cut(0, self.effort.public)

    @cached_property
    def train(self) -> tuple[Array, Labels]:
        """Plain data to learn from."""
        return self._plain(self.images.train.cut(0, self.effort.train))

    @cached_property
    def test(self) -> tuple[Array, Labels]:
        """Plain data to be scored on."""
        return self._plain(self.images.test.cut(0, self.effort.test))

    @cached_property
    def others(self) -> tuple[Array, Labels]:
        """Plain data of the developer's."""
        preparation = preparation_for(self.images.shape, shape_of(self.public), self.look)
        return self._others.plain(preparation), self._others.labels

    def _plain(self, part: Part) -> tuple[Array, Labels]:
        return part.plain(preparation_for(self.images.shape, self.images.shape, self.look)), part.labels

    @cached_property
    def network(self) -> nn.Sequential:
        """The developer's network, trained on public images once and kept."""
        labels = self.others[1]
        model = _network(self.images.shape, int(labels.max()) + 1, seed=0)
        self.request.store.make_folder()
        path = self.request.store.path_of((*self.facts, "network"), ".safetensors")
        if path.is_file():
            safetensors.torch.load_model(model, path)
            return model.eval()
        self.request.say(f"the developer's network learns from {len(labels):,} public images")
        self._learn(model, self.others[0], labels, seed=0)
        with new_file(path) as file:
            safetensors.torch.save_file(model.state_dict(), file)
        return model.eval()

    @cached_property
    def layer(self) -> FirstLayer:
        """What the developer sends to the provider."""
        return export_first_layer(self.network, self.images.shape)

    def plain_arm(self) -> Result:
        """Accuracy of a network that learns from plain data, all of it."""
        return self._arm("plain", self._plain_accuracy)

    def morphed_arm(self, tile: int | None) -> Result:
        """Accuracy of one that learns from a delivery, with the augmented layer."""
        return self._arm(("morphed", tile), partial(self._morphed_accuracy, tile))

    def features_arm(self, noise: float | None) -> Result:
        """Accuracy of one that learns from features with noise and answers to such, and its attackers."""
        found = self._arm(("features", noise), partial(self._features_accuracy, noise))
        facts = (*self.facts, "features attacked", noise)
        return {**found, **self.request.store.piece(facts, lambda: self._features_attacked(noise))}

    def attacked(self, core: str, tile: int | None) -> Result:
        """What attackers get of a delivery: the best that a stranger does, and each other one."""
        facts = (*self.facts, "attacked", core, tile)
        return self.request.store.piece(facts, lambda: self._attacked(core, tile))

    def protected(self) -> list[Result]:
        """Rows of protected deliveries, by front and by bits."""
        store = FeatureStore(self.request.store.folder, self.request.progress)
        train, test = (
            self.images.train.cut(0, self.effort.train),
            self.images.test.cut(0, self.effort.test),
        )
        own = store.front((*self.facts, "front"), self._make_front)
        ways = [Compared("the developer's network", own, train)]
        if self.effort.with_large:
            shape = shape_of(self.public)
            ways.append(large_network(store, self.images, self._others, shape, self.effort.dimensions))
        found = []
        for way in ways:
            both = [
                Features.of(store.features(way.front, part, self.images.shape), part.labels)
                for part in (train, test)
            ]
            parts = Parts(both[0], both[1], None, self.images.classes)
            found += [self._protected(way, parts, bits) for bits in self.effort.bits]
        return found

    def _make_front(self, path: Path) -> Front:
        return make_front(
            self.network[:-2],
            self.others[0],
            path,
            dimensions=self.effort.dimensions,
            normalisation=self.look,
        )

    def _protected(self, way: Compared, parts: Parts, bits: float | None) -> Result:
        certificate = None if bits is None else Certificate.for_bits(bits, features=way.front.dimensions)
        draws = self.request.seeds if certificate else 1
        facts = (*self.facts, "protected", way.front.digest, bits, draws)
        candidates = min(CANDIDATES, len(parts.train.rows))

        def make() -> Result:
            scores = [score(parts, certificate) for _ in range(draws)]
            found = {name: spread_of([one[name] for one in scores]) for name in scores[0]}
            most = None if certificate is None else round(certificate.identification(candidates), 4)
            nearest = {"nearest": found.get("identified"), "candidates": candidates, "at_most": most}
            return {"accuracy": found["accuracy"], **nearest}

        found = self.request.store.piece(facts, make)
        self.request.say(f"protected, {way.name}, {bits or 'no'} bits: {found['accuracy']['mean']:.3f}")
        return {"front": way.name, "bits": bits, "values": way.front.dimensions, **found}

    def _arm(self, about: object, accuracy: Callable[[int], float]) -> Result:
        """The accuracies of some seeds, each kept when it is there."""

        def make(seed: int) -> Result:
            return {"accuracy": accuracy(seed)}

        several = []
        for seed in range(self.request.seeds):
            one = self.request.store.piece((*self.facts, about, seed), partial(make, seed))
            several.append(one["accuracy"])
            self.request.say(f"{about}, seed {seed}: {100 * several[-1]:.1f} %")
        return {"accuracy": spread_of(several)}

    def _plain_accuracy(self, seed: int) -> float:
        model = _network(self.images.shape, self.images.classes, seed)
        self._learn(model, *self.train, seed=seed)
        return evaluate(model, _data(*self.test)).accuracy

    def _morphed_accuracy(self, tile: int | None, seed: int) -> float:
        key = MorphKey.generate(self.images.shape, tile=tile, insecure_seed=bytes([seed] * 32))
        model = _network(self.images.shape, self.images.classes, seed)
        attach(model, augment(self.layer, key))
        self._learn(model, morph(self.train[0], key), self.train[1], seed=seed)
        return evaluate(model, _data(morph(self.test[0], key), self.test[1])).accuracy

    def _features_accuracy(self, noise: float | None, seed: int) -> float:
        channel = Transmission.fitted(self.layer, self.others[0], noise)
        model = _network(self.images.shape, self.images.classes, seed)[1:]
        scale = np.float32(np.sqrt(channel.values))  # so that features are about 1
        self._learn(model, scale * channel.sent(self.train[0]), self.train[1], seed=seed)
        return evaluate(model, _data(scale * channel.sent(self.test[0]), self.test[1])).accuracy

    def _features_attacked(self, noise: float | None) -> Result:
        channel = Transmission.fitted(self.layer, self.others[0], noise)
        bits = None if channel.certificate is None else round(channel.certificate.bits, 1)
        return {"values": channel.values, "bits": bits, **channel.attacked(self.train[0], self.look)}

    def _attacked(self, core: str, tile: int | None) -> Result:
        count = self.effort.attacked
        (own, labels), (public, public_labels) = self.train, self.others
        images = Images(own[:count], public[:count], labels[:count], public_labels[:count], self.look)
        if self.images.classes != int(public_labels.max()) + 1:  # other classes: their labels help nobody
            images = images._replace(public_labels=np.zeros_like(images.public_labels))
        layer = random_layer(self.images.shape, self.effort.channels, 0)
        subject = delivered(images, layer, core=core, seed=0, tile=tile)
        reports = tried(subject, (*self.effort.strangers, *ATTACKERS.values()), 0)
        scores = {name: score_of(one) for name, one in reports.items()}
        strangers = {name: found for name in self.effort.strangers if (found := scores[name])}
        best = max(strangers, key=lambda name: float(strangers[name]["reidentified"]))
        return {
            "delivered": len(images.private), "channels": self.effort.channels, "core": core, "tile": tile,
            "layer_bytes": 0 if subject.augmented is None else subject.augmented.nbytes,
            "outsider": {"attack": best, **strangers[best]},
            **{who: {"attack": name, **(scores[name] or {})} for who, name in ATTACKERS.items()},
        }  # fmt: skip

    def _learn(self, model: nn.Module, plain: Array, labels: Labels, *, seed: int) -> None:
        train(
            model, _data(plain, labels), epochs=self.effort.epochs, batch_size=BATCH, learning_rate=RATE,
            seed=seed, progress=self.request.progress,
        )  # fmt: skip


def _network(shape: tuple[int, ...], classes: int, seed: int) -> nn.Sequential:
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = build_model(NETWORK, shape, classes)
    assert isinstance(model, nn.Sequential)  # noqa: S101  (all that are built in are)
    return model


def _data(plain: Array, labels: Labels) -> TensorDataset:
    return TensorDataset(torch.from_numpy(np.asarray(plain, np.float32)), torch.from_numpy(labels))
