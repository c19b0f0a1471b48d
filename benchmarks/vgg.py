"""The paper's first layer: VGG-16's at CIFAR size. Loads no PyTorch, so that memory can be measured."""

from pathlib import Path

import numpy as np

import mole

INPUT_SHAPE = (3, 32, 32)


def vgg_layer(seed: int = 0) -> mole.FirstLayer:
    """64 channels of 3x3 with padding 1 and random weights; their values do not matter for speed."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(64, 3, 3, 3)).astype(np.float32)
    bias = rng.normal(size=64).astype(np.float32)
    return mole.FirstLayer.conv(weight, bias, input_shape=INPUT_SHAPE, padding=1)


def report_memory_of_augmenting() -> None:
    """Make a key, build the layer, and print the bytes of the result and the peak of this process."""
    augmented = mole.augment(vgg_layer(), mole.MorphKey.generate(INPUT_SHAPE), form="dense")
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
    print(augmented.nbytes, peak)
