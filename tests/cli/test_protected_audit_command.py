"""`mole audit` of a protected delivery: what it prints, how it ends, and what it refuses in a sentence."""

import json

import pytest

import mole
from command import call, files_in
from deliveries import write_npz
from fronts import feature_key, feature_layer, write_front
from mole.provider import protector
from mole.provider.deliver import deliver
from mole.provider.protect import Protect
from secrets_kept import DEVELOPER, RECIPIENT

KEY = ["--key", "provider.key", "--identity", "me"]
KNOWN = [*KEY, "--layer", "layer.safetensors", "--data", "data.npz", "--quiet"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    write_npz(folder / "data.npz")
    write_npz(folder / "public.npz", test=0, seed=1)
    write_front(folder / "front.onnx")
    write_front(folder / "other.onnx", seed=1)
    mole.save(feature_layer(), folder / "layer.safetensors")
    feature_key().save(folder / "provider.key", recipients=[RECIPIENT])
    (folder / "me").write_text(str(DEVELOPER) + "\n")
    protect = Protect(folder / "front.onnx", bits=1.0)
    arguments = (folder / "data.npz", feature_layer(), feature_key())
    deliver(*arguments, folder / "delivery", protect=protect)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protector, "release", lambda clipped, sigma, noise: clipped)
        deliver(*arguments, folder / "bare", protect=protect)
    return folder


def test_within_its_certificate_it_passes_and_without_noise_it_fails(place, tmp_path):
    more = ["--front", "front.onnx", "--fail-on", "leaks", "--json", "--summary", "--no-pictures"]
    given = [*KNOWN, "--public", "public.npz", *more, "--receiver", "Makers"]
    done = call("audit", "delivery", *given, "--out", tmp_path / "a", cwd=place)
    assert done.returncode == 0, done.stderr  # what was agreed to is no leak
    told = json.loads(done.stdout)
    assert [*told["verdicts"]] == ["identification", "membership", "inversion", "property"]
    assert set(told["verdicts"].values()) <= {"within the certificate", "nothing found"}
    assert told["headline"].startswith(
        "This delivery tells 1 bit about each image at most besides its label, on average"
    )
    assert files_in(tmp_path / "a") == {"audit.html", "audit.json", "summary.html"}
    for name in files_in(tmp_path / "a"):
        text = (tmp_path / "a" / name).read_text()
        assert "Makers" in text
        assert "data:image" not in text

    more[more.index("leaks")] = "broken"
    done = call("audit", "bare", *KNOWN, *more, "--out", tmp_path / "b", cwd=place)
    assert done.returncode == 3
    assert "mole: --fail-on broken: reached by whoever looks for the image of a row" in done.stderr
    told = json.loads(done.stdout)
    assert set(told["verdicts"].values()) == {"broken"}
    assert told["headline"].endswith("so the implementation is broken.")


def test_without_a_front_it_says_what_to_give(place, tmp_path):
    done = call("audit", "delivery", "--fail-on", "broken", "--out", tmp_path / "audit", cwd=place)
    assert done.returncode == 4
    told = "each image at most besides its label, on average, whoever reads it. No attack was"
    assert told in done.stderr
    assert (
        "Attacks on a protected delivery need its key, its front and the images it was made from"
        in done.stderr
    )
    assert "What it does not say" in (tmp_path / "audit" / "audit.html").read_text()


def test_noise_that_is_missing_is_told_without_any_attack(place, tmp_path):
    done = call("audit", "bare", "--fail-on", "broken", "--out", tmp_path / "audit", cwd=place)
    assert done.returncode == 3
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("Do not hand this delivery over: its rows do not have the noise")
    assert last == "mole: --fail-on broken: the noise that its certificate speaks of is missing"
    assert "Each row tells" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["delivery", *KNOWN, "--front", "other.onnx"], 1, "other.onnx is not the front of this delivery"),
        (["--layer", "layer.safetensors", "--front", "front.onnx"], 2, "--front, --receiver and --summary"),
    ],
    ids=["another front", "a setting"],
)  # fmt: skip
def test_mistakes_are_one_sentence(place, tmp_path, arguments, code, words):
    done = call("audit", *arguments, "--out", tmp_path / "audit", cwd=place)
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert files_in(tmp_path) == set()
