"""What version 0.9 protected with Gaussian noise still has the certificate that it had, and counts.

`golden/protected-0.9` holds images, a front, a layer, a key with its ledger, and the delivery at 2 bits
that version 0.9 made of them. Everything goes through the command line.
"""

import json
import shutil
from pathlib import Path

import pytest

from command import call, right

GOLDEN = Path(__file__).parents[1] / "golden" / "protected-0.9"
KEY = ("--key", "provider.key", "--identity", "identity.txt")
LAYER = ("--layer", "feature-layer.safetensors")


@pytest.fixture
def place(tmp_path):
    """A copy, because commands write beside the files that they are given."""
    shutil.copytree(GOLDEN, tmp_path / "place")
    (tmp_path / "place" / "identity.txt").chmod(0o600)
    return tmp_path / "place"


def again(place, name, bits):
    return call(
        "deliver", "source.npz", *LAYER, *KEY, "--front", "front.onnx", "--bits", bits, "--out", name,
        cwd=place,
    )  # fmt: skip


def test_it_verifies_and_says_what_it_said(place):
    checks = right("verify", "delivery", cwd=place)
    assert all(check["holds"] for check in checks.values())
    assert "2 bits" in " ".join(map(str, checks["noise"].values()))
    told = right("info", "delivery", cwd=place)
    assert told["bits"] == {"train": 2.0}
    assert told["maximal leakage"] == {"train": None}


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"version": 6', '"version": 7'),
        ('"sigma": 0.5747398056883678', '"sigma": 0.5747398056883678, "limit": 6.0'),
        ('"sigma": 0.5747398056883678', '"sigma": 0.8'),
    ],
    ids=["another version", "a limit", "more noise than there is"],
)
def test_it_does_not_verify_with_another_certificate(place, was, now):
    manifest = place / "delivery" / "manifest.json"
    text = manifest.read_text()
    assert was in text
    manifest.write_text(text.replace(was, now))
    assert call("verify", "delivery", cwd=place).returncode == 1


def test_a_head_learns_from_it_and_the_key_makes_it_fit_for_home(place):
    told = right("train", "delivery", "--out", "head.safetensors", cwd=place)
    assert told["accuracy"]["train"] > 0.6
    right("export-head", "head.safetensors", *LAYER, *KEY, "--out", "head.onnx", cwd=place)
    assert (place / "head.onnx").exists()


def test_its_audit_has_the_bounds_of_gaussian_noise(place):
    right(
        "audit", "delivery", *KEY, *LAYER, "--data", "source.npz", "--front", "front.onnx",
        "--budget", "60", "--out", "audit", cwd=place,
    )  # fmt: skip
    told = json.loads((place / "audit" / "audit.json").read_text())
    (certificate,) = told["certificates"]
    assert (certificate["guesses"], certificate["delta"]) == (None, 1e-5)
    assert certificate["is_noisy"]
    assert {verdict["promise"] for verdict in told["verdicts"]} <= {"kept", "not tested"}


def test_what_it_gave_away_still_counts(place):
    """2 bits of a budget of 6 are spent: 4 are left."""
    refused = again(place, "too-much", "4.1")
    assert refused.returncode == 1
    assert "budget is 6" in refused.stderr
    assert not (place / "too-much").exists()
    assert again(place, "enough", "4").returncode == 0
    assert json.loads((place / "enough" / "manifest.json").read_text())["version"] == 7


def test_the_same_call_does_not_take_it_for_its_own(place):
    before = (place / "delivery" / "manifest.json").read_bytes()
    done = again(place, "delivery", "2")
    assert done.returncode == 1
    assert "holds another delivery" in done.stderr
    assert (place / "delivery" / "manifest.json").read_bytes() == before
