"""A protected delivery on the command line: what is printed, counted and refused."""

import json
import re

import pytest

import mole
from command import call
from deliveries import write_npz
from fronts import feature_key, feature_layer, write_front
from mole.provider.ledger import Ledger
from mole.provider.spending import Spending
from secrets_kept import DEVELOPER, RECIPIENT

DELIVER = (
    "deliver",
    "data.npz",
    "--layer",
    "layer.safetensors",
    "--key",
    "provider.key",
    "--identity",
    "me",
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))
    write_npz(tmp_path / "data.npz")
    write_front(tmp_path / "front.onnx")
    write_front(tmp_path / "other.onnx", seed=1)
    mole.save(feature_layer(), tmp_path / "layer.safetensors")
    feature_key().save(tmp_path / "provider.key", recipients=[RECIPIENT])
    (tmp_path / "me").write_text(str(DEVELOPER) + "\n")
    return tmp_path


def right(*arguments, cwd, said=False):
    done = call(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stderr if said else done.stdout


def wrong(*arguments, cwd):
    done = call(*arguments, cwd=cwd)
    assert done.returncode != 0
    assert done.stdout == ""
    return done.stderr


def test_the_last_lines_say_what_it_means(place):
    told = right(*DELIVER, "--front", "front.onnx", "--bits", "1", "--out", "one", cwd=place, said=True)
    assert (
        "Each row tells 1 bit about its image at most besides its label, averaged over images, wh" in told
    )
    assert re.search(
        r"1,000 candidates with the same label, nobody picks .* more than 1\.[678]\d? times", told
    )
    assert re.search(
        r"no guess .* is right more than 1[678](\.\d)? times as often with its row as with its", told
    )
    assert "no image in this delivery has given away more than 1 bit." in told
    assert "get your images back" not in told
    assert "too much to hide images" not in told
    assert "noise" in right("verify", "one", cwd=place)
    card = (place / "one" / "README.md").read_text()
    assert "# Protected data" in card
    assert "Each row tells 1 bit about its image" in card


def test_the_ledger_counts_and_the_budget_refuses(place):
    first = (*DELIVER, "--front", "front.onnx", "--bits", "1", "--budget", "1.6")
    right(*first, "--out", "one", cwd=place)
    told = wrong(*first, "--out", "two", cwd=place)
    assert "130 images would have given away up to 2 bits in all deliveries under this key" in told
    assert len(told.splitlines()) == 1
    assert not (place / "two").exists()
    other = (*DELIVER, "--front", "other.onnx", "--bits", "train=0.5,test=0.25", "--budget", "1.6")
    right(*other, "--out", "three", cwd=place)
    ledger = json.loads(right("ledger", "provider.key", "--identity", "me", "--json", cwd=place))
    assert ledger["bits given away"] == 1.5
    assert [entry["bits"] for entry in ledger["entries"]] == [pytest.approx(1.0), pytest.approx(0.5)]
    lines = right("ledger", "provider.key", "--identity", "me", cwd=place)
    assert "130 rows of at most 1 bit each" in lines
    assert json.loads(right("info", "three", "--json", cwd=place))["bits"] == {"test": 0.25, "train": 0.5}


def test_the_budget_is_kept(place):
    """A later delivery that names none is held to it, and only the ledger raises it."""
    one = (*DELIVER, "--front", "front.onnx", "--bits")
    ledger = ("ledger", "provider.key", "--identity", "me")
    right(*one, "1", "--budget", "4", "--out", "one", cwd=place)
    assert json.loads(right(*ledger, "--json", cwd=place))["budget in bits"] == 4
    assert "5 bits" in wrong(*one, "4", "--out", "two", cwd=place)
    assert wrong(*one, "4", "--budget", "2", "--out", "two", cwd=place).endswith(
        "or give a higher budget\n"
    )
    refusal = wrong(*one, "4", "--budget", "4", "--out", "two", cwd=place)
    assert "or set a higher budget with 'mole ledger'" in refusal
    refusal = wrong(*one, "4", "--budget", "100", "--out", "two", cwd=place)
    assert "this key has a budget of 4 bits for each image, and 100 were asked for" in refusal
    assert len(refusal.splitlines()) == 1
    assert not (place / "two").exists()
    assert "budget in bits" in right(*ledger, "--set-budget", "5", cwd=place)
    right(*one, "4", "--out", "two", cwd=place)
    assert "a positive number of bits" in wrong(*ledger, "--set-budget", "-1", cwd=place)


def test_the_ledger_shows_what_was_begun(place):
    found = Ledger(feature_key().fingerprint, place / "provider.key")
    Spending.beside(found).spend("an interrupted delivery", {"image": 3.0})
    lines = right("ledger", "provider.key", "--identity", "me", "--json", cwd=place)
    told = json.loads(lines)
    assert (told["deliveries"], told["unfinished deliveries"], told["bits given away"]) == (0, 1, 3.0)


def test_a_fingerprint_that_no_ledger_knows_is_told_of(place):
    told = right("ledger", 32 * "f", cwd=place, said=True)
    assert f"there is no ledger of {32 * 'f'} on this machine: is the fingerprint right?" in told


def test_requests_count_too(place):
    right(*DELIVER, "--front", "front.onnx", "--bits", "1", "--out", "one", cwd=place)
    requests = ("morph", *DELIVER[1:], "--front", "front.onnx", "--bits", "8")
    told = right(*requests, "--out", "requests", cwd=place, said=True)
    assert "Each row tells 8 bits about its image at most" in told
    assert "too much to hide images: most of them might be picked out." in told
    assert "whoever gets them can read the noisy rows." in told
    assert "no image in this delivery has given away more than 9 bits." in told
    assert not (place / "requests" / "augmented-layer.safetensors").exists()
    assert "would have given away up to 17 bits" in wrong(
        *requests, "--budget", "10", "--out", "more", cwd=place
    )


def test_images_do_not_come_back(place):
    right(*DELIVER, "--front", "front.onnx", "--bits", "1", "--out", "one", cwd=place)
    for out in ("back.npz", "back"):
        back = ("recover", "one", "--key", "provider.key", "--identity", "me", "--out", out)
        assert "it is protected, and holds features of them with noise" in wrong(*back, cwd=place)
        assert not (place / out).exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bits", "16"], "add --front, or leave it out; the bits of DICOM pixels are --depth"),
        (["--budget", "4"], "--budget is for protected deliveries: add --front"),
        (["--front", "front.onnx"], "--front needs one of --bits, --sigma and --epsilon"),
        (["--front", "front.onnx", "--bits", "1", "--sigma", "1"], "--bits and --sigma say the same"),
        (["--front", "front.onnx", "--bits", "much"], "'much' is not an amount: write --bits 1"),
        (["--front", "front.onnx", "--bits", "-1"], "bits must be a positive number, not -1"),
        (["--front", "front.onnx", "--bits", "1e9"], "1e+09 bits a row leave no noise"),
        (
            ["--front", "front.onnx", "--bits", "train=1,train=8"],
            "'train=1,train=8' has two amounts for split 'train': leave out one of them",
        ),
        (["--front", "front.onnx", "--bits", "train=1"], "give one for each split, or one for all"),
        (["--front", "data.npz", "--bits", "1"], "data.npz is not an ONNX file"),
        (["--front", "nothing.onnx", "--bits", "1"], "nothing.onnx"),
        (["--front", "front.onnx", "--bits", "1", "--engine", "ray"], "give --engine local"),
    ],
)  # fmt: skip
def test_wrong_calls_are_one_sentence(place, options, words):
    told = wrong(*DELIVER, *options, "--out", "one", cwd=place)
    assert words in told
    assert len(told.splitlines()) == 1
    assert not (place / "one").exists()
