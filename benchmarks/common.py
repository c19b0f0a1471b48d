"""What every benchmark shares: timing, the machine's description, and where results go."""

import json
import statistics
from pathlib import Path
from typing import Any

import mole
from mole.experiments.results_folder import machine

RESULTS = Path(__file__).parent / "results"


def summary(times: list[float]) -> dict[str, float]:
    """Median and best, rounded to what can be measured."""
    return {"median_s": round(statistics.median(times), 4), "best_s": round(min(times), 4)}


def write_result(name: str, result: dict[str, Any]) -> None:
    """Write a result as JSON beside the benchmark, and print it."""
    RESULTS.mkdir(exist_ok=True)
    head = {"benchmark": name, "version": mole.__version__, "machine": machine()}
    text = json.dumps({**head, **result}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)
