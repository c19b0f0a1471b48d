"""What the other side wrote never steers a terminal."""

import hashlib
import json

import pytest

import mole
from command import call
from deliveries import SMALL, make_key, make_layer, write_npz
from mole.cli.fit_to_print import fit_to_print
from mole.foreign_text import listed, printable, shown

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u2028mole: all is right\n\x9b31m"


def test_hostile_text_in_a_message():
    for made in (shown(HOSTILE), printable(HOSTILE), fit_to_print(HOSTILE), listed([HOSTILE, HOSTILE])):
        assert made.isprintable()
        assert "\\x1b[2J" in made
    assert len(shown("x" * 10_000)) == len(shown("\x1b" * 10_000)) == 80
    assert shown("Größe 9 µm, 猫") == "Größe 9 µm, 猫"


@pytest.fixture
def hostile(tmp_path):
    """A delivery whose every name is hostile, with its checksum right."""
    mole.deliver(
        write_npz(tmp_path / "d.npz", train=20, test=0), make_layer(), make_key(), tmp_path / "d", **SMALL
    )
    path = tmp_path / "d" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    (train,) = manifest["splits"].values()
    manifest.update(
        tool=HOSTILE, classes=[HOSTILE] * 10, columns=[HOSTILE], mode=HOSTILE, resize=HOSTILE,
        layout=HOSTILE, splits={HOSTILE: train},
        files={**manifest["files"], HOSTILE: {"bytes": 1, "sha256": "0" * 64}},
    )  # fmt: skip
    blank = json.dumps({**manifest, "seal": "0" * 64}, indent=1).encode()
    path.write_bytes(blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1))
    return tmp_path


@pytest.mark.parametrize("command", ["info", "verify"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_hostile_names_in_what_a_command_prints(hostile, command, options):
    done = call(command, "d", *options, cwd=hostile)
    assert "owned" in done.stdout + done.stderr  # so that it was printed at all
    for line in (done.stdout + done.stderr).splitlines():
        assert line.isprintable()
        assert not line.startswith("mole: all is right")
