"""The figures of docs/serving.md are those of the benchmarks."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "serving.md").read_text()


def result(name: str) -> dict:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def test_nothing_was_lost():
    run, words = result("serving_restarts"), " ".join(TEXT.split())
    assert (run["lost"], run["answered_twice"], run["wrong_answers"]) == (0, 0, 0)
    assert f"all {run['requests']:,} requests of {run['seconds'] / 60:.0f} minutes" in words
    assert f"{run['sent_again']} of them were sent again" in words


def test_broken_requests():
    run, words = result("serving_fuzz"), " ".join(TEXT.split())
    closed, fine = run["outcomes"]["closed"], run["outcomes"]["grpc OK"] + run["outcomes"]["http 200"]
    assert f"{run['cases']:,} requests that were broken" in words
    assert f"{run['cases'] - closed - fine:,} got an error of the protocol" in words
    assert f"{fine} were still good requests" in words
    assert f"{closed} ended before" in words
