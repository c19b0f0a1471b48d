"""What every benchmark shares: timing, the machine's description, and where results go."""

import json
import os
import platform
import statistics
from pathlib import Path
from typing import Any

import numpy as np

import mole

RESULTS = Path(__file__).parent / "results"


def summary(times: list[float]) -> dict[str, float]:
    """Median and best, rounded to what can be measured."""
    return {"median_s": round(statistics.median(times), 4), "best_s": round(min(times), 4)}


def machine() -> dict[str, Any]:
    """Enough to judge whether two results can be compared."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def write_result(name: str, result: dict[str, Any]) -> None:
    """Write a result as JSON beside the benchmark, and print it."""
    RESULTS.mkdir(exist_ok=True)
    head = {"benchmark": name, "version": mole.__version__, "machine": machine()}
    text = json.dumps({**head, **result}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)
