"""Check a delivery, without the key: every byte, every row, and that the layer fits the data."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mole.delivery.artefacts import UNFINISHED, load_delivered_layer, load_encoding, read_shards
from mole.delivery.manifest import NAME as MANIFEST
from mole.delivery.manifest import Manifest
from mole.delivery.probes import load_probes, probe_error
from mole.errors import MoleError
from mole.files.store import Store, digest_of
from mole.progress import Progress, no_progress


class Check(NamedTuple):
    """One thing that was checked: what, whether it holds, and in what way or why not."""

    what: str
    holds: bool
    detail: str


def verify(store: Store, *, progress: Progress = no_progress) -> list[Check]:
    """Check everything about a delivery that can be checked without the key.

    Raises:
        DeliveryError: if there is no manifest to check against.
    """
    manifest = Manifest.read(store)
    checks = [Check("manifest", True, f"{manifest.rows} rows, made by {manifest.tool}")]
    checks.append(_checked("files", lambda: _files(store, manifest, progress)))
    if not checks[-1].holds:
        return checks  # what is damaged needs no further reading
    checks.append(_checked("rows", lambda: _rows(store, manifest)))
    expected = manifest.probe_error
    if expected is not None:
        checks.append(_checked("augmented layer", lambda: _layer(store, manifest, expected)))
    return checks


def _checked(what: str, work: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(what, *work())
    except MoleError as error:
        return Check(what, False, str(error))


def _files(store: Store, manifest: Manifest, progress: Progress) -> tuple[bool, str]:
    names = store.names() - {MANIFEST, UNFINISHED}
    problems = [f"{name} is missing" for name in sorted(set(manifest.files) - names)]
    problems += [f"{name} does not belong here" for name in sorted(names - set(manifest.files))]
    total = sum(facts.bytes for facts in manifest.files.values())
    done = 0
    for name, facts in manifest.files.items():
        if name in names and digest_of(store, name) != (facts.sha256, facts.bytes):
            problems.append(f"{name} is damaged")
        done += facts.bytes
        progress(done, total)
    if problems:
        return False, "; ".join(problems)
    return True, f"{len(manifest.files)} files, {total / 1e6:.1f} MB, every checksum right"


def _rows(store: Store, manifest: Manifest) -> tuple[bool, str]:
    problems: list[str] = []
    for split, facts in manifest.splits.items():
        ids: set[str] = set()
        rows = 0
        for shard in read_shards(store, manifest, split):
            rows += len(shard.values)
            ids.update(shard.row_ids)
            if not np.isfinite(shard.values).all():
                problems.append(f"split '{split}' has a NaN or an infinity")
            if manifest.classes and shard.labels is not None:
                known = (shard.labels >= 0) & (shard.labels < len(manifest.classes))
                if not known.all():
                    problems.append(f"split '{split}' has a label without a class")
        if rows != facts.rows or len(ids) != rows:
            problems.append(f"split '{split}' has {rows} rows, {len(ids)} of them different")
    if problems:
        return False, "; ".join(dict.fromkeys(problems))
    return True, ", ".join(f"{facts.rows} {split}" for split, facts in manifest.splits.items())


def _layer(store: Store, manifest: Manifest, expected: float) -> tuple[bool, str]:
    augmented = load_delivered_layer(store)
    mine = (augmented.key_fingerprint, augmented.input_shape, augmented.output_shape, augmented.kappa)
    theirs = (manifest.key_fingerprint, manifest.input_shape, manifest.output_shape, manifest.kappa)
    if mine != theirs:
        return False, "it belongs to another delivery"
    encoding = load_encoding(store, manifest.dtype)
    error = probe_error(load_probes(store), augmented, encoding)
    limit = max(2 * expected, 1e-5)
    if not error <= limit:
        return False, f"it does not fit the data: features are off by {error:.1e}, expected {limit:.1e}"
    return True, f"it fits the data: features are off by {error:.1e}"
