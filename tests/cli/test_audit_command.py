"""`mole audit` as a privacy officer calls it: what it writes, what it says, and how it ends."""

import json
from pathlib import Path

import numpy as np
import pyrage
import pytest
import typer

import mole
from audit_report import made_up_report
from command import call, files_in
from deliveries import make_key, make_layer, write_npz
from mole.attacks.tools.attack import Attacker
from mole.audit.levels import Level, Status
from mole.audit.report import Verdict
from mole.cli.audit import _fail_on, _plainly
from mole.provider.deliver import deliver

IDENTITY = pyrage.x25519.Identity.generate()
KEY = ["--key", "my.key", "--identity", "identity.txt"]
KNOWN = [
    *KEY,
    "--layer",
    "layer.safetensors",
    "--data",
    "data.npz",
    "--public",
    "public.npz",
    "--no-appendix",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A delivery of small images, and what its provider has."""
    folder = tmp_path_factory.mktemp("place")
    write_npz(folder / "data.npz", train=60, test=0)
    np.savez(
        folder / "public.npz", x_train=np.load(write_npz(folder / "p.npz", train=80, seed=9))["x_train"]
    )
    mole.save(make_layer(), folder / "layer.safetensors")
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    for number, name in enumerate(("my.key", "other.key")):
        make_key(number).save(folder / name, recipients=[str(IDENTITY.to_public())])
    deliver(folder / "data.npz", make_layer(), make_key(0), folder / "delivery")
    return folder


def test_everything_at_once(place, tmp_path):
    out = tmp_path / "audit"
    names = ["--by", "A. Officer", "--receiver", "Model Makers Ltd"]
    more = ["--summary", "--no-pictures", "--fail-on", "leaks", "--json", "--out", out]
    done = call("audit", "delivery", *KNOWN, *names, *more, cwd=place)
    assert done.returncode == 3
    told = json.loads(done.stdout)
    assert (told["page"], told["summary"]) == (str(out / "audit.html"), str(out / "summary.html"))
    lines = done.stderr.splitlines()
    assert lines[0] == told["headline"]
    assert lines[0].startswith("Treat this delivery like the images: its receiver can get them back")
    assert lines[1].startswith("A curious developer: the receiver")
    assert lines[-1].startswith("mole: --fail-on leaks: reached by ")
    assert "the curious developer" in lines[-1]
    assert files_in(out) == {"audit.html", "audit.json", "summary.html"}
    for name in files_in(out):
        text = (out / name).read_text()
        assert "A. Officer" in text
        assert "Model Makers Ltd" in text
        assert "data:image" not in text
        assert (out / name).stat().st_mode & 0o077 == 0
    assert json.loads((out / "audit.json").read_text())["plots"] == []


def test_for_people_the_headline_stands_once_and_each_attack_in_a_line(place, tmp_path):
    done = call("audit", "delivery", "--no-appendix", "--budget", 1, "--out", tmp_path / "audit", cwd=place)
    written = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert (done.stdout + done.stderr).count(written["headline"]) == 1
    lines = [line for line in done.stdout.splitlines() if line.startswith("attack: ")]
    assert [line.split("  ")[0] for line in lines] == [
        f"attack: {one['name']}" for one in written["attacks"]
    ]
    assert all(
        line.endswith(f"  {_plainly(one['status'])}")
        for line, one in zip(lines, written["attacks"], strict=True)
    )
    quiet = call(
        "audit", "delivery", "--no-appendix", "--budget", 1, "--out", tmp_path / "q", "-q", cwd=place
    )
    assert (quiet.stdout.count(written["headline"]), quiet.stderr) == (1, "")


def test_an_attack_that_failed_is_no_error_of_the_program():
    shown = [_plainly(status.value) for status in Status]
    assert "got nothing" in shown
    assert not any("fail" in words for words in shown)
    assert len(set(shown)) == len(Status)


def test_what_nobody_could_test_is_no_pass(place, tmp_path):
    out = tmp_path / "audit"
    done = call("audit", "delivery", "--no-appendix", "--fail-on", "broken", "--out", out, "-q", cwd=place)
    assert done.returncode == 4
    assert "mole: --fail-on broken: not known" in done.stderr
    assert (out / "audit.html").is_file()


def test_a_leak_to_strangers_does_not_pass_for_a_test_of_the_receiver(place, tmp_path):
    """Without the first layer none of the receiver's attacks runs, and a stranger learns a little."""
    out = tmp_path / "audit"
    options = [*KEY, "--data", "data.npz", "--public", "public.npz", "--no-appendix", "--summary", "--json"]
    done = call("audit", "delivery", *options, "--fail-on", "broken", "--out", out, cwd=place)
    told = json.loads(done.stdout)
    assert told["verdicts"]["curious developer"] == "leaks"
    assert "curious developer" in told["not tested in full"]
    assert done.returncode == 4
    assert "the curious developer" in done.stderr.splitlines()[-1]
    assert told["headline"].startswith("Treat this delivery like the images until more is known")
    written = json.loads((out / "audit.json").read_text())["verdicts"]
    assert [one["attacker"] for one in written if not one["fully_tested"]] == told["not tested in full"]
    for name in ("audit.html", "summary.html"):
        assert "Leaks, not tested in full" in (out / name).read_text()


def test_an_audit_is_replaced_only_when_asked_for_and_nothing_else_ever(place, tmp_path):
    made_up_report().save(tmp_path / "audit", appendix=False, summary=True)
    before = (tmp_path / "audit" / "audit.json").read_text()
    arguments = ["audit", "delivery", "--no-appendix", "--budget", 1, "--out", tmp_path / "audit", "-q"]
    refused = call(*arguments, cwd=place)
    says = f"mole: {tmp_path / 'audit'} exists already: choose another name, or replace it: give --force\n"
    assert (refused.returncode, refused.stderr) == (1, says)
    assert (tmp_path / "audit" / "audit.json").read_text() == before
    assert call(*arguments, "--force", cwd=place).returncode == 0
    assert files_in(tmp_path) == {
        "audit",
        "audit/audit.html",
        "audit/audit.json",
    }  # no summary was asked for
    assert json.loads((tmp_path / "audit" / "audit.json").read_text())["delivery"]["name"] == "delivery"
    (tmp_path / "audit" / "notes.txt").write_text("mine")
    refused = call(*arguments, "--force", cwd=place)
    assert refused.returncode == 1
    assert "exists already, and is not just an audit: choose another name" in refused.stderr
    assert (tmp_path / "audit" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("worst", "levels", "code"),
    [
        ("broken", ["nothing found", "leaks", "leaks", "leaks"], 0),
        ("leaks", ["nothing found"] * 4, 0),
        ("leaks", ["nothing found", "nothing found", "leaks", "leaks"], 3),
        ("leaks", ["not tested", "broken", "nothing found", "nothing found"], 3),
        ("broken", ["leaks", "leaks", "broken", "not tested"], 3),
        ("leaks", ["nothing found", "not tested", "nothing found", "nothing found"], 4),
        ("broken", ["leaks", "not tested", "leaks", "leaks"], 4),
        ("broken", ["leaks", "leaks", "half leaks", "leaks"], 4),
        ("leaks", ["half nothing found", "nothing found", "nothing found", "nothing found"], 4),
        ("leaks", ["leaks", "leaks", "half leaks", "leaks"], 3),
    ],
)
def test_exit_codes(worst, levels, code):
    verdicts = [
        Verdict(attacker, Level(level.removeprefix("half ")), "", "", fully_tested="half" not in level)
        for attacker, level in zip(Attacker, levels, strict=True)
    ]
    if not code:
        return _fail_on(worst, verdicts)
    with pytest.raises(typer.Exit) as stop:
        _fail_on(worst, verdicts)
    assert stop.value.exit_code == code


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["delivery", "--key", "other.key", *KEY[2:]], 1, "delivery was made with key"),
        (["nothere", *KEY], 1, "nothere does not exist: give the folder of a delivery"),
        (["nothere"], 1, "nothere does not exist: give the folder of a delivery"),
        (["--layer", "layer.safetensors", "--summary"], 2, "--summary belong to a delivery"),
        (["--layer", "layer.safetensors", "--receiver", "x"], 2, "belong to a delivery"),
        (["delivery", "--fail-on", "holds"], 2, "'holds' is not one of 'broken', 'leaks'"),
    ],
    ids=["another key", "no folder", "no folder and no key", "summary", "receiver", "level"],
)
def test_mistakes_end_before_any_attack(place, tmp_path, arguments, code, words):
    done = call("audit", *arguments, "--out", tmp_path / "audit", cwd=place)
    assert done.returncode == code
    assert words in done.stderr
    assert files_in(tmp_path) == set()
