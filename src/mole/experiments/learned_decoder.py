"""A decoder that learns to rebuild images from noisy features: how much of a picture comes back.

The attacker has images of the same kind, the front and the noise's size, so that it can make as many noisy
rows of its own images as it likes. It learns from them to rebuild the image, beginning with the mean image,
and keeps what served best on images that it set aside.
"""

import math

import numpy as np
import torch
from torch import nn

from mole.experiments.channel_scores import Features
from mole.protection import Certificate
from mole.scheme.shapes import Array

WIDTH, BATCH, RATE = 512, 256, 3e-3
ASIDE = 1000  # of the attacker's images, at most a tenth


def inversion(
    own: Features, own_images: Array, others: Features, images: Array, *, bits: float | None, epochs: int
) -> dict[str, float | int | None]:
    """How near images come back from their rows.

    Args:
        own: clean features of the attacker's images, (n, d).
        own_images: those images, (n, ...), from 0 to 1.
        others: clean features of images that it attacks.
        images: those images.
        bits: of the rows; None for no noise.
        epochs: how often it goes through its images, with other noise each time.
    """
    features = own.rows.shape[1]
    certificate = None if bits is None else Certificate.for_bits(bits, features=features)
    aside = min(ASIDE, len(own.rows) // 10)
    middle = own_images[aside:].mean(axis=0)
    pixels = int(np.prod(images.shape[1:]))
    decoder = _Decoder(features, pixels, 1.0 if certificate is None else certificate.sigma)
    known = Features(own.rows[aside:], own.labels[aside:])
    check = own.first(aside).noisy(certificate)
    wanted = (own_images - middle).reshape(len(own_images), pixels)
    best, state = math.inf, decoder.state_dict()
    for epoch in range(epochs):
        decoder.learn(known.noisy(certificate).rows, wanted[aside:], rate=RATE * (1 - epoch / epochs))
        error = float(np.square(decoder.rebuilt(check.rows) - wanted[:aside]).mean())
        if error < best:
            best, state = error, {name: value.clone() for name, value in decoder.state_dict().items()}
    decoder.load_state_dict(state)
    target = (images - middle).reshape(len(images), pixels)
    guess = decoder.rebuilt(others.noisy(certificate).rows)
    return {
        "bits": bits,
        "attackers_images": len(own.rows),
        "images": len(images),
        "mean_image_db": round(_decibels(target), 2),
        "decoder_db": round(_decibels(target - guess), 2),
        "correlation": round(_correlation(guess, target), 3),
    }


class _Decoder(nn.Module):
    """Features to pixels; it starts with the answer 0, which is the mean image."""

    def __init__(self, features: int, pixels: int, sigma: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.scale = 1 / math.hypot(sigma, features**-0.5)
        last = nn.Linear(WIDTH, pixels)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.layers = nn.Sequential(nn.Linear(features, WIDTH), nn.ReLU(), last)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=RATE)

    def learn(self, rows: Array, wanted: Array, *, rate: float) -> None:
        """Go through rows and images once."""
        self.optimizer.param_groups[0]["lr"] = rate
        inputs, outputs = (torch.from_numpy(part.astype(np.float32)) for part in (rows, wanted))
        for batch in torch.randperm(len(inputs)).split(BATCH):
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.layers(inputs[batch] * self.scale), outputs[batch])
            loss.backward()
            self.optimizer.step()

    def rebuilt(self, rows: Array) -> Array:
        """What it makes of rows: images without the mean, (n, pixels)."""
        with torch.inference_mode():
            found = self.layers(torch.from_numpy(rows.astype(np.float32)) * self.scale)
        return np.asarray(found.numpy())


def _decibels(errors: Array) -> float:
    """The signal-to-noise ratio of images from 0 to 1, by the mean square of all errors."""
    return -10 * math.log10(float(np.square(errors).mean()))


def _correlation(guess: Array, target: Array) -> float:
    """The mean correlation of what was rebuilt with the image, both without the mean image."""
    lengths = np.linalg.norm(guess, axis=1) * np.linalg.norm(target, axis=1)
    return float(np.mean((guess * target).sum(axis=1) / np.maximum(lengths, 1e-12)))
