"""How much faster a training is that keeps the features of its frozen first layer.

Two networks at 3x32x32, each with an augmented layer for blocks of rows and for tiles, and with its plain
first layer, frozen as well. Epochs with and without kept features take turns in one process; the first of
each, in which features are computed either way, does not count. Seconds are the processor's, on one thread,
and the median of all others: on a machine that does other work at the same time they are what can be
compared.
"""

import statistics
import time
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

import mole
from common import write_result
from mole.torch import attach, build_model, export_first_layer, train

SHAPE, CLASSES, BATCH = (3, 32, 32), 10, 64
CUTS: dict[str, dict[str, Any]] = {"rows": {"kappa": 1}, "tiles of 4": {"tile": 4}}
STEPS = {"vgg16": 1, "small_vgg": 4}  # batches in an epoch
ROUNDS = {"vgg16": 1, "small_vgg": 2}
EPOCHS = 4


def epoch_seconds(model: nn.Module, steps: int, *, cache: bool) -> list[float]:
    """Seconds of every epoch but the first."""
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(steps * BATCH, *SHAPE, generator=generator)
    labels = torch.randint(CLASSES, (len(samples),), generator=generator)
    ends: list[float] = []
    train(
        model, TensorDataset(samples, labels), epochs=EPOCHS, batch_size=BATCH, cache_features=cache,
        on_epoch=lambda epoch: ends.append(time.process_time()),
    )  # fmt: skip
    return [end - start for start, end in pairwise(ends)]


def measured(network: str) -> list[dict[str, Any]]:
    """Seconds of a step with either layer, computed and kept, and on plain data."""
    torch.manual_seed(0)
    model, steps = build_model(network, SHAPE, CLASSES), STEPS[network]
    first = export_first_layer(model, SHAPE)
    model[0].requires_grad_(False)  # type: ignore[index]
    plain = [one for _ in range(ROUNDS[network]) for one in epoch_seconds(model, steps, cache=False)]
    rows = []
    for layout, cut in CUTS.items():
        attach(model, mole.augment(first, mole.MorphKey.generate(SHAPE, **cut)))
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS[network]):
            for cache in (False, True):
                seconds[cache] += epoch_seconds(model, steps, cache=cache)
        computed, kept, alone = (
            statistics.median(times) / steps for times in (seconds[False], seconds[True], plain)
        )
        rows.append({
            "network": network,
            "layout": layout,
            "plain_s": round(alone, 3),
            "computed_s": round(computed, 3),
            "kept_s": round(kept, 3),
            "computed_over_plain": round(computed / alone, 2),
            "kept_over_plain": round(kept / alone, 2),
            "times_faster": round(computed / kept, 2),
            "kept_mb_per_1000_rows": round(1000 * first.channels * 32 * 32 * 4 / 1e6),
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run the benchmark."""
    torch.set_num_threads(1)
    results = [row for network in STEPS for row in measured(network)]
    write_result("frozen_layer", {"batch": BATCH, "input": "3x32x32", "results": results})


if __name__ == "__main__":
    main()
