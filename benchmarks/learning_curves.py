"""How far two ways of training lie apart: over all seeds, and seed by seed."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np


def by_seed(runs: dict[int, dict[str, Any]], one: str, other: str) -> dict[str, Any]:
    """How far two arms of one seed lie apart: means over seeds, after each epoch and after the last."""
    lost, right = (
        np.array([[run[arm][what] for arm in (one, other)] for run in runs.values()])
        for what in ("loss", "accuracy")
    )
    more = (right[:, 0, -1] - right[:, 1, -1]).tolist()
    return {
        "losses apart": [float(f"{x:.2g}") for x in np.mean(abs(lost[:, 0] / lost[:, 1] - 1), axis=0)],
        "accuracies apart": np.mean(abs(right[:, 0] - right[:, 1]), axis=0).round(4).tolist(),
        "more in the end, seed by seed": [round(gap, 4) for gap in more],
        "more in the end": round(statistics.mean(more), 4),
        "standard error of that": round(spread(more) / math.sqrt(len(more)), 4),
    }


def spread(values: Sequence[float]) -> float:
    """Their standard deviation: none for a single one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def agreement(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """How far two curves lie apart, and whether their bands of one standard deviation always meet."""
    gaps = [abs(a - b) for a, b in zip(one["mean"], other["mean"], strict=True)]
    spreads = [sum(pair) for pair in zip(*(arm["standard deviation"] for arm in (one, other)), strict=True)]
    last = [arm["standard deviation"][-1] / math.sqrt(len(arm["accuracy"])) for arm in (one, other)]
    return {
        "largest gap of means": round(max(gaps), 4),
        "gap after the last epoch": round(gaps[-1], 4),
        "standard error of that gap": round(math.hypot(*last), 4),
        "bands meet after every epoch": all(
            gap <= spread for gap, spread in zip(gaps, spreads, strict=True)
        ),
    }
