"""What every benchmark shares: timing, the machine's description, and where results go."""

import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import mole
from mole.experiments.results_folder import machine

RESULTS = Path(__file__).parent / "results"


def summary(times: list[float]) -> dict[str, float]:
    """Median and best, rounded to what can be measured."""
    return {"median_s": round(statistics.median(times), 4), "best_s": round(min(times), 4)}


def busy_seconds() -> tuple[float, float]:
    """Processor seconds until now: what the machine did not idle, and this program with its children."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    idle = (3, 4)  # nothing to do, and waiting for a disk; guests are counted in the first two
    busy = sum(int(field) for place, field in enumerate(fields[:8]) if place not in idle)
    own = os.times()
    mine = own.user + own.system + own.children_user + own.children_system
    return busy / os.sysconf("SC_CLK_TCK"), mine


_START = (time.perf_counter(), *busy_seconds())


def others() -> float:
    """How many processors other programs kept busy, on average since this one began.

    Children count as this program's own when they have ended; Ray's never do.
    """
    began, busy_before, own_before = _START
    busy, own = busy_seconds()
    used = (busy - busy_before) - (own - own_before)
    return round(max(0.0, used) / (time.perf_counter() - began), 2)


def write_result(name: str, result: dict[str, Any], *, used_by_others: float | None = None) -> None:
    """Write a result as JSON beside the benchmark, and print it.

    How busy others kept the machine is measured, unless somebody knows it better.
    """
    RESULTS.mkdir(exist_ok=True)
    used = others() if used_by_others is None else used_by_others
    head = {
        "benchmark": name,
        "version": mole.__version__,
        "machine": {**machine(), "processors_used_by_others": used},
    }
    text = json.dumps({**head, **result}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)
