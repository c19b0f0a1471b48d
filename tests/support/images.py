"""Made-up images whose statistics resemble those of photographs: neighbouring pixels agree."""

import numpy as np


def smooth_images(rng: np.random.Generator, count: int, shape: tuple[int, int, int]) -> np.ndarray:
    """Noise with a 1/f spectrum and correlated channels, normalised: (count, *shape) of float32."""
    channels, height, width = shape
    noise = rng.normal(size=(count, channels, height, width))
    noise += rng.normal(size=(count, 1, height, width)) * 2
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    spectrum = np.fft.rfft2(noise) / np.maximum(frequency, 1 / max(height, width))
    images = np.fft.irfft2(spectrum, s=(height, width))
    return ((images - images.mean()) / images.std()).astype(np.float32)
