"""How much of the features each kind of core loses to rounding, at CIFAR/VGG-16 size.

Relative error of the augmented layer's features against the plain layer's in 64 bits, for morphed data
stored in 32 bits, 16 bits, or 8 bits with a scale for each element. The augmented layer is stored in 32
bits throughout. The core of uniform numbers is not one of ours: it is what drawing every element from
uniform(0, 1) would give. Random cores vary from draw to draw: median and range of five.

With --images FILE.npz (an array of uint8 images, n x 32 x 32 x 3) it runs on those; otherwise on made-up
images with the spectrum of photographs.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mole
from common import write_result
from mole.scheme.augmenting import build_augmented_layer
from mole.scheme.convolution import Convolution
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Core, Morphing
from mole.scheme.shapes import Array
from vgg import INPUT_SHAPE, vgg_layer

SAMPLE, TESTED, DRAWS = 20_000, 256, 5


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help=".npz with uint8 images, n x 32 x 32 x 3")
    arguments = parser.parse_args()
    sample, tested, source = load(arguments.images)
    rows = []
    for kappa in (1, 3, 12):
        for core in ("uniform(0,1)", "gaussian", "orthogonal", "whitened"):
            draws = DRAWS if core in ("uniform(0,1)", "gaussian") else 1  # the others never vary
            measured = [measure(morphing(core, kappa, draw, sample), tested) for draw in range(draws)]
            rows.append({"core": core, "kappa": kappa, "draws": draws, **spread(measured)})
    write_result("numerics", {"images": source, "tested": TESTED, "rows": rows})


def load(path: Path | None) -> tuple[Array, Array, str]:
    """A sample to whiten with, other images to test on, and what they are."""
    rng = np.random.default_rng(0)
    if path is None:
        images = made_up_images(rng, 8_000 + TESTED)
        return images[TESTED:], images[:TESTED], "made up, with the spectrum of photographs"
    with np.load(path) as file:
        name = max(file.files, key=lambda name: file[name].size)
        pixels = file[name][: SAMPLE + TESTED].transpose(0, 3, 1, 2)
    mean, std = pixels.mean(axis=(0, 2, 3)) / 255, pixels.std(axis=(0, 2, 3)) / 255
    plain = mole.Normalisation(tuple(mean), tuple(std)).apply(pixels)
    return plain[TESTED:], plain[:TESTED], path.stem


def made_up_images(rng: np.random.Generator, count: int) -> Array:
    """Noise with a 1/f spectrum, the same in all channels but for a little colour."""
    noise = rng.normal(size=(count, *INPUT_SHAPE)) + 2 * rng.normal(size=(count, 1, 32, 32))
    frequency = np.hypot(np.fft.fftfreq(32)[:, None], np.fft.rfftfreq(32)[None, :])
    images = np.fft.irfft2(np.fft.rfft2(noise) / np.maximum(frequency, 1 / 32), s=(32, 32))
    plain: Array = ((images - images.mean()) / images.std()).astype(np.float32)
    return plain


def morphing(core: str, kappa: int, draw: int, sample: Array) -> Morphing:
    """A morphing with one kind of core."""
    if core == "uniform(0,1)":
        matrix = np.random.default_rng(draw).uniform(size=(3072 // kappa,) * 2)
        return Morphing(Layout.of("rows", INPUT_SHAPE, kappa), Core(matrix, np.linalg.inv(matrix)))
    return mole.MorphKey.generate(
        INPUT_SHAPE,
        kappa=kappa,
        core=core,
        sample=sample if core == "whitened" else None,
        insecure_seed=bytes([draw] * 32),
    ).morphing


def measure(morphing: Morphing, images: Array) -> dict[str, float]:
    """Condition number and relative errors of one core."""
    layer = vgg_layer(seed=2)
    truth = Convolution(layer, dtype=np.float64)(images.reshape(len(images), -1).astype(np.float64))
    in_order = np.arange(layer.channels)
    built = build_augmented_layer(layer, morphing, in_order, key_fingerprint="0" * 32)
    morphed = morphing.morph(images).reshape(len(images), -1)
    measured = {"condition": float(np.linalg.cond(morphing.core.matrix))}
    for stored, store in STORED.items():
        features = multiply(store(morphed), built.matrix)
        difference = features - truth.reshape(features.shape)
        measured[stored] = float(np.linalg.norm(difference) / np.linalg.norm(truth))
    return measured


def spread(measured: list[dict[str, float]]) -> dict[str, object]:
    """The median of each figure, and its range where there were several draws."""
    result: dict[str, object] = {}
    for name in measured[0]:
        values = sorted(row[name] for row in measured)
        low, middle, high = (float(f"{values[i]:.2g}") for i in (0, len(values) // 2, -1))
        result[name] = middle if low == high else {"median": middle, "low": low, "high": high}
    return result


def multiply(rows: Array, matrix: Array) -> Array:
    """The product in the 32 bits that a network computes in."""
    return (rows.astype(np.float32) @ matrix).astype(np.float64)


def eight_bits(rows: Array) -> Array:
    """Rounded to 255 levels, with a scale for each element."""
    scale = np.abs(rows).max(axis=0) / 127
    rounded: Array = np.rint(rows / scale) * scale
    return rounded


STORED: dict[str, Callable[[Array], Array]] = {
    "float32": lambda rows: rows,
    "float16": lambda rows: rows.astype(np.float16),
    "int8": eight_bits,
}

if __name__ == "__main__":
    main()
