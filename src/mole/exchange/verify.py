"""Check a delivery, without the key: every byte, every row, and that the layer fits the data."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import MoleError
from mole.exchange.delivery import (
    UNFINISHED,
    load_delivered_layer,
    load_encoding,
    read_shards,
    shard_names,
)
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.exchange.probes import Probes, Witnesses, deviation, load_probes, probe_error, tolerance
from mole.progress import Progress, no_progress
from mole.scheme.augmented import AugmentedLayer
from mole.storage.stores import Store, digest_of

Answer = tuple[bool, str]


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
    wanted: dict[int, str] = {}
    if manifest.probe_error is not None:
        try:
            fit = _Fit.of(store, manifest, manifest.probe_error)
        except MoleError as error:
            return [*checks, Check("augmented layer", False, str(error))]
        wanted = fit.witnesses.row_ids()
    witnessed: dict[int, npt.NDArray[Any]] = {}
    checks.append(_checked("rows", lambda: _rows(store, manifest, wanted, witnessed)))
    if manifest.probe_error is not None:
        checks.append(_checked("augmented layer", fit.layer))
        checks.append(_checked("data", lambda: fit.data(witnessed)))
    return checks


def _checked(what: str, work: Callable[[], Answer]) -> Check:
    try:
        return Check(what, *work())
    except MoleError as error:
        return Check(what, False, str(error))


def _files(store: Store, manifest: Manifest, progress: Progress) -> Answer:
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


def _rows(
    store: Store, manifest: Manifest, wanted: dict[int, str], witnessed: dict[int, npt.NDArray[Any]]
) -> Answer:
    """Check every row, and set aside the witnesses' rows, if they are there, on the way."""
    problems: list[str] = []
    number = 0
    for split, facts in manifest.splits.items():
        ids: set[str] = set()
        rows = 0
        for shard in read_shards(store, manifest, split):
            rows += len(shard.values)
            ids.update(shard.row_ids)
            if wanted.get(number) in shard.row_ids:
                witnessed[number] = shard.values[shard.row_ids.index(wanted[number])].copy()
            number += 1
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


class _Fit(NamedTuple):
    """What is needed to see whether the layer fits the data."""

    store: Store
    manifest: Manifest
    expected: float
    augmented: AugmentedLayer
    probes: Probes
    witnesses: Witnesses

    @classmethod
    def of(cls, store: Store, manifest: Manifest, expected: float) -> "_Fit":
        return cls(store, manifest, expected, load_delivered_layer(store), *load_probes(store, manifest))

    def layer(self) -> Answer:
        """Whether the layer belongs here, and turns the probes into their features."""
        augmented, manifest = self.augmented, self.manifest
        mine = (augmented.key_fingerprint, augmented.input_shape, augmented.output_shape, augmented.kappa)
        theirs = (manifest.key_fingerprint, manifest.input_shape, manifest.output_shape, manifest.kappa)
        if mine != theirs:
            return False, "it belongs to another delivery"
        error = probe_error(self.probes, augmented, load_encoding(self.store, manifest.dtype))
        limit = max(2 * self.expected, 1e-5)
        if not error <= limit:
            return False, f"it does not fit the probes: features are off by {error:.1e}, not {limit:.1e}"
        return True, f"it fits the probes: features are off by {error:.1e}"

    def data(self, witnessed: dict[int, npt.NDArray[Any]]) -> Answer:
        """Whether the layer finds the witnesses' features in their shards."""
        names = shard_names(self.manifest.splits)
        witnesses, shards = self.witnesses, self.witnesses.shards.tolist()
        misfits = [names[number] for number in shards if number not in witnessed]
        if not misfits and shards:
            encoding = load_encoding(self.store, self.manifest.dtype)
            rows = encoding.decode(np.stack([witnessed[number] for number in shards]))
            off = deviation(witnesses, rows, self.augmented)
            allowed = tolerance(witnesses.features, rows, self.probes, encoding, self.expected)
            misfits = [
                names[number]
                for number, holds in zip(shards, (off <= allowed).tolist(), strict=True)
                if not holds
            ]
        if misfits:
            return False, f"{', '.join(misfits)}: not made with the key of the augmented layer"
        return True, f"{len(shards)} of {len(names)} shards have a witness, and the layer fits each"
