"""Who reads damaged files: commands and functions, as the other side's files meet them."""

import contextlib
import hashlib
import io
import json
import re
import shutil
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np

import mole
from fuzz_files import SHAPE, layer
from fuzz_mutations import as_json
from mole.cli import main
from mole.errors import MoleError
from mole.exchange.checkpoint_files import read_checkpoint
from mole.exchange.delivery import Delivery
from mole.exchange.shards import RESERVED
from mole.provider.keys.key_file import read_key_text, read_whitening
from mole.provider.plan import kept_types
from mole.scheme.convolution import features_of
from mole.sources.opening import open_source

READ_AT_MOST = 4  # samples of each split

STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class OutputError(Exception):
    """A command that ended, or spoke, as none should."""


def command(*arguments: str) -> None:
    """A command of `mole`: it may refuse, in one printable line and with an exit code."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["mole", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    said = err.getvalue()
    if code not in (0, 1) or (code and not said.startswith("mole: ")) or "Traceback" in said:
        raise OutputError(f"exit code {code}: {said[-300:]}")
    if STEERING.search(said + out.getvalue()):
        raise OutputError("what it says could steer a terminal")


def read_layer(folder: Path) -> None:
    """Load a layer, and run it on one sample."""
    for path in folder.glob("*.safetensors"):
        layer = mole.load(path)
        if isinstance(layer, mole.FirstLayer):
            features_of(layer, np.zeros((1, *layer.input_shape), np.float32))
        else:
            layer.features(np.zeros((1, *layer.input_shape), np.float32))
    command("info", str(next(folder.glob("*.safetensors"))))


def read_delivery(folder: Path) -> None:
    """Verify, inform, and read as a data set would."""
    put_right_checksums(folder)
    read_manifest(folder)


def audit_delivery(folder: Path) -> None:
    """Attack what is left of a delivery, for a moment."""
    put_right_checksums(folder)
    mole.save(layer(), folder.parent / "layer.safetensors")
    shutil.rmtree(folder.parent / "audit", ignore_errors=True)
    given = ("--layer", str(folder.parent / "layer.safetensors"), "--out", str(folder.parent / "audit"))
    command("audit", str(folder), *given, "--budget", "1", "--quiet")


def put_right_checksums(folder: Path) -> None:
    """Make the manifest say of every file what is true of it now."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for name, facts in manifest["files"].items():
        content = (folder / name).read_bytes()
        facts.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    blank = as_json({**manifest, "seal": "0" * 64})
    path.write_bytes(blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1))


def read_manifest(folder: Path) -> None:
    """Verify and inform, and read labels and ids of every split."""
    command("verify", str(folder))
    command("info", str(folder))
    delivery = Delivery.open(folder)
    for split in delivery.manifest.splits:
        delivery.labels(split)
        delivery.row_ids(split)
        [file.facts() for file in delivery.shard_files(split)]


def read_source(folder: Path) -> None:
    """Open a source, and read some samples of each split as the layer wants them."""
    inside = list(folder.iterdir())
    alone = inside[0] if len(inside) == 1 and inside[0].suffix in (".npz", ".npy", ".dcm") else folder
    source = open_source(str(alone))
    for split in source.splits.values():
        for index in range(min(len(split), READ_AT_MOST)):
            with contextlib.suppress(MoleError):
                split.read(index)
        for name in split.extra:
            split.extra[name][0]


def read_labelled(folder: Path) -> None:
    """Open images by each of the tables of labels beside them, and find the types of their columns."""
    for table in sorted((folder / "tables").iterdir()):
        with contextlib.suppress(MoleError):
            source = open_source(folder / "photos", labels=table)
            kept_types(source, [name for name in source.splits["train"].extra if name not in RESERVED])


def read_key(folder: Path) -> None:
    """The text of a key, and its whitening, as they are once they are decrypted."""
    parameters, _ = read_key_text((folder / "key.txt").read_bytes(), "a key")
    read_whitening(
        (folder / "whitening").read_bytes(), digest=parameters.whitening or "", name="a whitening"
    )


def read_network(folder: Path) -> None:
    """The header of a checkpoint."""
    read_checkpoint(folder / "model.safetensors")
    command("info", str(folder / "model.safetensors"))


def read_pinned(folder: Path) -> None:
    """A delivery into a place where another one seems to have begun."""
    with contextlib.suppress(MoleError):
        mole.deliver(
            folder / "data.npz",
            layer(),
            mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32)),
            folder / "out",
        )
