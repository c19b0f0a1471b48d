"""A learned decoder: the fallback where algebra does not give every pixel.

A first layer with a stride, few channels or a narrow Linear layer loses part of each image, and least
squares leaves that part blank. But images of one kind resemble each other: a small network, trained on
public images that went through the developer's own layer, fills in the blanks. Needs PyTorch.
"""

import math
import time
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from mole.attacks.tools.attack import Attack, Attacker, Finding
from mole.attacks.tools.channel_order import find_order
from mole.attacks.tools.deconvolution import Deconvolution
from mole.attacks.tools.views import DeveloperView, MissingInputError, NotApplicableError
from mole.errors import MissingExtraError
from mole.scheme.convolution import features_of
from mole.scheme.shapes import Array, Shape

if TYPE_CHECKING:
    from torch import Tensor, nn

AT_MOST = 256
FEWEST_PUBLIC = 64
MOST_PUBLIC = 8192
HELD_OUT = 0.1
EPOCHS, MOST_STEPS, BATCH = 20, 1200, 32
MOST_SECONDS = 60.0  # for training; a slow machine gets a worse decoder, not a longer wait
LEARNING_RATE = 2e-3


def run(view: DeveloperView, rng: np.random.Generator) -> Finding:
    """Put the channels in order, train on public images, decode."""
    if view.public is None or len(view.public) < FEWEST_PUBLIC:
        raise MissingInputError(
            f"a decoder learns from public images of the same kind, at least {FEWEST_PUBLIC} of them"
        )
    undo = Deconvolution.of(view.layer)
    if undo.is_exact:
        raise NotApplicableError(
            "the features of this layer hold every number of an image: there is nothing to learn, algebra "
            "gives it exactly"
        )
    found = find_order(view, rng)
    decoder = Decoder(view.public[:MOST_PUBLIC].astype(np.float32), undo, rng)
    return Finding(
        words=(
            f"The features hold {undo.rank:,} of the {undo.elements:,} numbers of an image. A small "
            f"network trained for {decoder.seconds:.0f} seconds on {decoder.images:,} public images filled "
            f"in the rest: on public images set aside its error is {decoder.error:.2f} of their "
            f"standard deviation, where least squares has {decoder.plain_error:.2f}."
        ),
        images=decoder(view.features_in_order(found.order, AT_MOST)),
        channel_order=found.order,
        facts={
            "order found by": found.method,
            "public images": decoder.images,
            "steps": decoder.steps,
            "error on public images left aside": round(decoder.error, 4),
            "error of least squares": round(decoder.plain_error, 4),
            "numbers pinned down": undo.rank,
            "numbers in an image": undo.elements,
        },
    )


class Decoder:
    """Features to images, learned from public images: what least squares gives, and a correction to it.

    Attributes:
        images: how many it learned from.
        steps, seconds: how long.
        error, plain_error: with and without the correction, on images set aside, over their deviation.
    """

    def __init__(self, public: Array, undo: Deconvolution, rng: np.random.Generator) -> None:
        torch = _torch()
        self._undo = undo
        aside = max(1, round(HELD_OUT * len(public)))
        learn, check = public[aside:], public[:aside]
        self._middle = learn.mean(axis=0)
        self._scale = max(float(learn.std()), 1e-12)
        features = features_of(undo.layer, learn)
        self._feature_scale = max(float(features.std()), 1e-12)
        self._feature_middle = features.mean(axis=0)
        with torch.random.fork_rng([]):
            torch.manual_seed(int(rng.integers(2**31)))
            self._network = _network(undo.layer.input_shape, undo.layer.output_shape)
            start = time.monotonic()
            self.steps = self._train(features, (learn - self._middle) / self._scale, rng, start)
        self.images, self.seconds = len(learn), time.monotonic() - start
        seen = features_of(undo.layer, check)
        deviation = max(float(check.std()), 1e-12)
        self.error = float(np.sqrt(np.square(self(seen) - check).mean())) / deviation
        self.plain_error = float(np.sqrt(np.square(undo(seen) - check).mean())) / deviation

    def __call__(self, features: Array) -> Array:
        """Images from features in the first layer's order."""
        torch = _torch()
        self._network.eval()
        with torch.inference_mode():
            out = [
                self._network(*self._inputs(features[at : at + BATCH])).numpy()
                for at in range(0, len(features), BATCH)
            ]
        images = np.concatenate(out).reshape(len(features), *self._undo.layer.input_shape)
        return np.asarray(images * self._scale + self._middle, np.float32)

    def _inputs(self, features: Array) -> "tuple[Tensor, Tensor]":
        """What the network sees: features, and what least squares makes of them, both on the same scale."""
        torch = _torch()
        coarse = (self._undo(features) - self._middle) / self._scale
        even = (features - self._feature_middle) / self._feature_scale
        return torch.from_numpy(even.astype(np.float32)), torch.from_numpy(coarse.astype(np.float32))

    def _train(self, features: Array, wanted: Array, rng: np.random.Generator, start: float) -> int:
        torch = _torch()
        inputs, coarse = self._inputs(features)
        target = torch.from_numpy(wanted.astype(np.float32))
        steps = min(MOST_STEPS, EPOCHS * -(-len(target) // BATCH))
        optimizer = torch.optim.Adam(self._network.parameters(), lr=LEARNING_RATE)
        for step in range(steps):
            done = max(step / steps, (time.monotonic() - start) / MOST_SECONDS)
            if done >= 1:
                return step
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * math.cos(done * math.pi / 2)
            rows = torch.from_numpy(rng.integers(len(target), size=BATCH))
            optimizer.zero_grad()
            guess = self._network(inputs[rows], coarse[rows])
            loss = torch.nn.functional.mse_loss(guess, target[rows].reshape(guess.shape))
            loss.backward()
            optimizer.step()
        return steps


def _network(input_shape: Shape, output_shape: Shape) -> "nn.Module":
    from mole.attacks.tools.decoder_network import DecoderNetwork  # noqa: PLC0415  (needs PyTorch)

    return DecoderNetwork(input_shape, output_shape)


def _torch() -> ModuleType:
    try:
        import torch  # noqa: PLC0415  (an optional dependency)
    except ModuleNotFoundError:
        raise MissingExtraError("the learned inversion needs PyTorch", "torch") from None
    return torch


ATTACK = Attack(
    name="learned-inversion",
    title="Learned decoder",
    attacker=Attacker.DEVELOPER,
    view=DeveloperView,
    run=run,
    source="this project: for layers whose features hold fewer numbers than an image",
    advice=(
        "Judge a lossy first layer by what is rebuilt here, not by its count of features: what images have "
        "in common need not be sent to be known."
    ),
)
