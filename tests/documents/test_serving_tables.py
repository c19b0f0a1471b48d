"""The figures of docs/serving.md are those of the benchmarks."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TEXT = (ROOT / "docs" / "serving.md").read_text()


def result(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def test_nothing_was_lost():
    run, words = result("serving_restarts"), " ".join(TEXT.split())
    assert (run["lost"], run["answered_twice"], run["wrong_answers"]) == (0, 0, 0)
    assert f"all {run['requests']:,} requests of {run['seconds'] / 60:.0f} minutes" in words
    assert f"{run['sent_again']} of them were sent again" in words


@pytest.mark.skipif(not (RESULTS / "serving.json").exists(), reason="not measured yet")
def test_multiplications():
    rows, words = result("serving")["networks"], " ".join(TEXT.split())
    macs = {(row["network"], row["data"]): row["macs"] for row in rows}
    more = {
        name: f"{100 * (count / macs[name[0], 'plain'] - 1):.0f} % more" for name, count in macs.items()
    }
    toy = [f"{macs['small_resnet', data] / 1e6:.1f} million" for data in ("plain", "tiles of 4")]
    assert f"small_resnet, a toy, has {toy[0]}, and {toy[1]} in tiles of 4" in words
    assert f"tiles of 4: {more['small_resnet', 'tiles of 4']}" in words
    assert f"VGG-16 at 3x32x32 has {more['VGG-16', 'tiles of 4']}" in words
    assert f"ResNet-50 at 3x224x224 {more['ResNet-50', 'tiles of 8']}" in words
    assert macs["ViT-S/16", "tiles of 16"] == macs["ViT-S/16", "plain"]


def test_broken_requests():
    run, words = result("serving_fuzz"), " ".join(TEXT.split())
    closed, fine = run["outcomes"]["closed"], run["outcomes"]["grpc OK"] + run["outcomes"]["http 200"]
    assert f"{run['cases']:,} requests that were broken" in words
    assert f"{run['cases'] - closed - fine:,} got an error of the protocol" in words
    assert f"{fine} were still good requests" in words
    assert f"{closed} ended before" in words
