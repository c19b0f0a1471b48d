"""A decoder that learns from public images what features show of them. Needs PyTorch."""

import math
import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mole.errors import MissingExtraError
from mole.scheme.shapes import Array, Shape

if TYPE_CHECKING:
    from torch import Tensor, nn

HELD_OUT = 0.1  # of public images
EPOCHS, MOST_STEPS, BATCH = 20, 1200, 32
MOST_SECONDS = 60.0  # for training; a slow machine gets a worse decoder, not a longer wait
LEARNING_RATE = 2e-3


class Examples(NamedTuple):
    """Images, (n, *input_shape), and their features, (n, *output_shape)."""

    images: Array
    features: Array


class Decoder:
    """Features to images, learned from public images: what a coarse rule gives, and a correction to it.

    Attributes:
        images: how many it learned from.
        steps, seconds: how long.
        error, plain_error: with and without the correction, on images set aside, over their deviation.
    """

    def __init__(
        self,
        learn: Examples,
        check: Examples,
        coarse: Callable[[Array], Array],
        rng: np.random.Generator,
        *,
        noisy: Callable[[Array], Array] | None = None,
    ) -> None:
        """Learn.

        Args:
            learn: public images to learn from.
            check: others, to see what was learned.
            coarse: features to images, as well as algebra can.
            rng: what draws the batches.
            noisy: what noise makes of features, drawn anew for every batch; None for no noise.
        """
        torch = _torch()
        self._coarse, self._noisy = coarse, noisy
        self._shape = learn.images.shape[1:]
        self._middle = learn.images.mean(axis=0)
        self._scale = max(float(learn.images.std()), 1e-12)
        self._feature_scale = max(float(self._seen(learn.features).std()), 1e-12)
        self._feature_middle = learn.features.mean(axis=0)
        with torch.random.fork_rng([]):
            torch.manual_seed(int(rng.integers(2**31)))
            self._network = _network(self._shape, learn.features.shape[1:])
            start = time.monotonic()
            self.steps = self._train(learn, rng, start)
        self.images, self.seconds = len(learn.images), time.monotonic() - start
        seen = self._seen(check.features)
        deviation = max(float(check.images.std()), 1e-12)
        self.error = float(np.sqrt(np.square(self(seen) - check.images).mean())) / deviation
        self.plain_error = float(np.sqrt(np.square(coarse(seen) - check.images).mean())) / deviation

    def __call__(self, features: Array) -> Array:
        """Images from features."""
        torch = _torch()
        self._network.eval()
        with torch.inference_mode():
            out = [
                self._network(*self._inputs(features[at : at + BATCH])).numpy()
                for at in range(0, len(features), BATCH)
            ]
        images = np.concatenate(out).reshape(len(features), *self._shape)
        return np.asarray(images * self._scale + self._middle, np.float32)

    def _seen(self, features: Array) -> Array:
        return features if self._noisy is None else self._noisy(features)

    def _inputs(self, features: Array) -> "tuple[Tensor, Tensor]":
        """What the network sees: features, and what the coarse rule makes of them, on the same scale."""
        torch = _torch()
        coarse = (self._coarse(features) - self._middle) / self._scale
        even = (features - self._feature_middle) / self._feature_scale
        return torch.from_numpy(even.astype(np.float32)), torch.from_numpy(coarse.astype(np.float32))

    def _train(self, learn: Examples, rng: np.random.Generator, start: float) -> int:
        torch = _torch()
        known = self._inputs(learn.features) if self._noisy is None else None
        wanted = (learn.images - self._middle) / self._scale
        target = torch.from_numpy(wanted.astype(np.float32))
        steps = min(MOST_STEPS, EPOCHS * -(-len(target) // BATCH))
        optimizer = torch.optim.Adam(self._network.parameters(), lr=LEARNING_RATE)
        for step in range(steps):
            done = max(step / steps, (time.monotonic() - start) / MOST_SECONDS)
            if done >= 1:
                return step
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * math.cos(done * math.pi / 2)
            drawn = rng.integers(len(target), size=BATCH)
            rows = torch.from_numpy(drawn)
            if known is None:
                inputs, coarse = self._inputs(self._seen(learn.features[drawn]))
            else:
                inputs, coarse = known[0][rows], known[1][rows]
            optimizer.zero_grad()
            guess = self._network(inputs, coarse)
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
        raise MissingExtraError("a learned decoder needs PyTorch", "torch") from None
    return torch
