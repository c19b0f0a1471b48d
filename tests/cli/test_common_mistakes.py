"""The commands of both roles with every mistake that they can meet."""

import re
from pathlib import Path

from mistakes import (
    EMPTY,
    IMAGE,
    KEY,
    MISSING,
    NAN,
    NO_IMAGES,
    NO_KEY,
    OUTPUT,
    PASSPHRASE,
    REST,
    SHAPE,
    TYPE,
    checks_of,
)
from mole.cli.app import COMMANDS

# command -> mistake -> calls, each with what must be said
MISTAKES = {
    "info": {
        MISSING: [(["missing"], "missing cannot be read: it does not exist")],
        TYPE: [
            (["text.txt"], "text.txt is not a layer file, or it is cut off"),
            (["twins.safetensors"], "not a Morphed Learning layer"),
        ],
        PASSPHRASE: [
            (["locked.key", "--passphrase-file", "wrong.txt"], "the passphrase is wrong"),
            (["locked.key"], "locked.key needs a passphrase: give --passphrase-file"),
            (["my.key"], "my.key is encrypted for age recipients: give --identity"),
        ],
        EMPTY: [(["empty"], "empty has no manifest.json")],
        NAN: [(["nan-layer.safetensors"], "nan-layer.safetensors is damaged")],
    },
    "verify": {
        MISSING: [(["missing"], "missing does not exist")],
        TYPE: [(["text.txt"], "text.txt is a file")],
        EMPTY: [(["empty"], "empty has no manifest.json")],
    },
    "analyse": {
        MISSING: [(["--layer", "missing"], "missing cannot be read")],
        TYPE: [(["--layer", "text.txt"], "text.txt is not a layer file")],
        SHAPE: [(["--shape", "3x9x9", "--network", "my_network:small"], "does not run on a batch")],
    },
    "demo": {
        REST: [(["--out", "empty"], "empty exists already")],
        OUTPUT: [([], None)],
    },
}

# Why a mistake is not in the table above.
DOES_NOT_APPLY = {
    "info": {KEY, IMAGE, SHAPE, OUTPUT},  # reads one file at a time, and writes none
    "verify": NO_KEY | {IMAGE, NAN, SHAPE, OUTPUT},  # says what it finds in its result: test_cli_delivery
    "analyse": NO_KEY | {EMPTY, IMAGE, NAN, OUTPUT},
    "demo": NO_KEY | NO_IMAGES | {MISSING, TYPE},  # has its own data
}


test_a_mistake_is_one_sentence_and_nothing_is_left_behind, test_every_mistake_is_made_or_cannot_be = (
    checks_of(MISTAKES, DOES_NOT_APPLY)
)


def test_the_tables_together_have_every_command():
    files = Path(__file__).parent.glob("test_*_mistakes.py")
    tables = [re.findall(r'(?m)^    "([a-z-]+)": \{$', file.read_text()) for file in files]
    assert sorted(name for table in tables for name in table) == sorted(COMMANDS)
