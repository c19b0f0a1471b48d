"""Clip, noise, grid: what makes features into rows that a certificate holds for."""

import math
import secrets

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from mole.errors import ParameterError, ShapeError
from mole.protection.certificate import Certificate
from mole.protection.limited_noise import Source, limited
from mole.scheme.normals import normals_from
from mole.scheme.shapes import Array

GRID_STEPS = 64  # of the grid, for each standard deviation of the noise
INSIDE = 1 - 2.0**-40  # of the clip: room for the rounding of the length itself
ROUNDING = 1e-9  # by which a row may seem longer than the clip


class FreshNoise:
    """Normal numbers that nobody can draw again: a key stream under a key from the operating system.

    The key is not kept, and has nothing to do with the provider's: what it hides must outlive that one.
    """

    def __init__(self) -> None:
        cipher = Cipher(algorithms.ChaCha20(secrets.token_bytes(32), bytes(16)), mode=None)
        self._encryptor = cipher.encryptor()

    def normals(self, count: int) -> npt.NDArray[np.float64]:
        """The next standard normal numbers."""
        return normals_from(self._words(count + count % 2))[:count]

    def uniforms(self, count: int) -> npt.NDArray[np.float64]:
        """The next numbers from 0 to 1, without 1."""
        return np.asarray((self._words(count) >> np.uint64(11)) * 2.0**-53, np.float64)

    def _words(self, count: int) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype="<u8")

    def __repr__(self) -> str:
        return "FreshNoise(secret)"


def clip(features: Array, most: float) -> tuple[npt.NDArray[np.float64], int]:
    """Features, (n, d), with no row longer than `most`, and how many of their numbers were none.

    What is not a number, or infinite, becomes zero: a front comes from the other side.

    >>> clip(np.array([[3.0, 4.0], [0.3, np.nan]]), 1.0)
    (array([[0.6, 0.8],
           [0.3, 0. ]]), 1)
    """
    if features.ndim != 2:
        raise ShapeError(f"features come as rows, (n, d), not {features.shape}")
    wide = features.astype(np.float64)
    bad = ~np.isfinite(wide)
    wide[bad] = 0
    largest = np.abs(wide).max(axis=1, initial=0, keepdims=True)
    scaled = np.divide(
        wide, largest, out=np.zeros_like(wide), where=largest > 0
    )  # so that no square overflows
    length = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):
        is_long = ~(length * largest <= most * INSIDE)
    shorter = scaled * np.divide(most * INSIDE, length, out=np.zeros_like(length), where=length > 0)
    return np.where(is_long, shorter, wide), int(bad.sum())


def grid_step(sigma: float) -> float:
    """The step of the public grid that noisy values are rounded to: a power of two.

    >>> grid_step(0.847), grid_step(64.0)
    (0.0078125, 1.0)
    """
    return 2.0 ** math.floor(math.log2(sigma / GRID_STEPS))


def release(
    clipped: npt.NDArray[np.float64], certificate: Certificate, noise: Source
) -> npt.NDArray[np.float64]:
    """Clipped features with fresh noise, on the grid: what may leave.

    Rounding comes last and is the same for everybody, so it tells nothing more; without it the low bits of
    floating point would tell which numbers were added.
    """
    step, length = grid_step(certificate.sigma), np.linalg.norm(clipped, axis=1)
    if (length > certificate.clip * (1 + ROUNDING)).any():
        raise ParameterError("rows are longer than their certificate allows: clip them first")
    noisy = clipped + certificate.sigma * _noise(clipped, length, certificate, noise)
    return np.asarray(np.rint(noisy / step) * step)


def _noise(
    clipped: npt.NDArray[np.float64],
    length: npt.NDArray[np.float64],
    certificate: Certificate,
    noise: Source,
) -> npt.NDArray[np.float64]:
    """Noise in units of sigma; along the features, (n, d), which have that length, it is limited."""
    found = noise.normals(clipped.size).reshape(clipped.shape)
    if certificate.limit is None:
        return found
    along = np.divide(clipped, length[:, None], out=np.zeros_like(clipped), where=length[:, None] > 0)
    normal, rho = (found * along).sum(axis=1), length / certificate.sigma
    kept = limited(normal, rho, math.log(2) * certificate.limit, noise) - rho
    return np.asarray(found + (kept - normal)[:, None] * along)
