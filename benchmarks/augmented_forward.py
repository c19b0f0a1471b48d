"""An augmented layer as one matrix and in two factors: its size, and the time to build it and to run it.

At CIFAR/VGG-16 size, all in one process and in turns, so that ratios mean something on a busy machine. The
training step is that of VGG-16, whose first layer is the augmented one.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import mole
from common import summary, write_result
from mole.scheme.factored import LAYER_FORMS
from mole.torch import attach
from mole.torch.networks import build_network
from vgg import INPUT_SHAPE, vgg_layer

ROUNDS = 5
BATCHES = (1, 64)


def in_turns(works: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of each, one after the other and again, after a round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return {name: seconds[1:] for name, seconds in times.items()}


def compared(works: dict[str, Callable[[], object]]) -> dict[str, object]:
    """What each takes, and how many times faster factors are: the median over rounds."""
    times = in_turns(works)
    ratios = [dense / factored for dense, factored in zip(times["dense"], times["factored"], strict=True)]
    return {
        **{name: summary(seconds) for name, seconds in times.items()},
        "times_faster_in_factors": round(statistics.median(ratios), 2),
    }


def training_step(model: torch.nn.Module, samples: torch.Tensor) -> Callable[[], None]:
    """One step of plain gradient descent."""
    labels = torch.zeros(len(samples), dtype=torch.long)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(samples), labels).backward()
        optimizer.step()

    return step


def main() -> None:
    """Run the benchmark."""
    layer, key = vgg_layer(), mole.MorphKey.generate(INPUT_SHAPE)
    _ = key.morphing.core.inverse  # not part of what is measured
    build = compared({form: partial(mole.augment, layer, key, form=form) for form in LAYER_FORMS})
    layers = {form: mole.augment(layer, key, form=form) for form in LAYER_FORMS}
    models = {form: build_network("vgg16", INPUT_SHAPE, 10) for form in LAYER_FORMS}
    modules = {form: attach(models[form], layers[form]) for form in LAYER_FORMS}
    samples = torch.from_numpy(np.random.default_rng(0).normal(size=(64, *INPUT_SHAPE)).astype(np.float32))
    with torch.no_grad():
        features = {form: module(samples[:8]) for form, module in modules.items()}
        forward = {
            str(size): compared({form: partial(modules[form], samples[:size]) for form in LAYER_FORMS})
            for size in BATCHES
        }
    error = (features["factored"] - features["dense"]).norm() / features["dense"].norm()
    write_result(
        "augmented_forward",
        {
            "size": "3x32x32 input, 64 channels, 3x3 kernel, padding 1, kappa 1, float32",
            "torch": torch.__version__,
            "bytes": {form: layers[form].nbytes for form in LAYER_FORMS},
            "relative_difference_of_features": float(f"{error:.1e}"),
            "build": build,
            "forward_by_batch": forward,
            "training_step_of_vgg16_batch_64": compared(
                {form: training_step(model, samples) for form, model in models.items()}
            ),
        },
    )


if __name__ == "__main__":
    main()
