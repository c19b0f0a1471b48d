"""What version 0.9 protected with Gaussian noise still has the certificate that it had, and counts.

`golden/protected-0.9` holds images, a front, a layer, a key with its ledger, and the delivery at 2 bits
that version 0.9 made of them. Everything goes through the command line.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from command import call, right
from mole.exchange.manifest import BLANK

GOLDEN = Path(__file__).parents[1] / "golden" / "protected-0.9"
KEY = ("--key", "provider.key.age", "--identity", "identity.txt")
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
    assert told["maximal leakage in bits"] == {"train": None}


HOSTILE = {
    "another version": ({"version": 7}, {}, "'limit' does not fit its version"),
    "a limit in version 6": ({}, {"limit": 6.5}, "'limit' does not fit its version"),
    "more noise than there is": ({}, {"sigma": 0.8}, "rows are"),
    "a low limit": ({"version": 7}, {"limit": 1e-300}, "limit is a number of bits from"),
    "a high limit": ({"version": 7}, {"limit": 1e300}, "limit is a number of bits from"),
    "hardly any noise": ({"version": 7}, {"limit": 900, "clip": 1e6}, "too small for a limit"),
    "no number": ({"version": 7}, {"limit": None}, "'limit'"),
}


@pytest.mark.parametrize(("version", "facts", "told"), HOSTILE.values(), ids=HOSTILE)
def test_it_does_not_verify_with_another_certificate(place, version, facts, told):
    manifest = place / "delivery" / "manifest.json"
    content = json.loads(manifest.read_text()) | version
    content["protection"]["rows"]["train"] |= facts
    text = json.dumps({**content, "seal": BLANK})
    manifest.write_text(text.replace(BLANK, hashlib.sha256(text.encode()).hexdigest(), 1))
    done = call("verify", "delivery", cwd=place)
    assert done.returncode == 1
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if "noise" not in told and "rows" not in told:
        trained = call("train", "delivery", "--out", "head.safetensors", cwd=place)
        assert (trained.returncode, (place / "head.safetensors").exists()) == (1, False)


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
