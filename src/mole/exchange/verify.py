"""Check a delivery, without the key: every byte, every row, and that the layer fits the data.

for check in verify("delivery"):
    print(check.what, check.holds, check.detail)

How far off features may be is for this program to say: what a delivery claims can only narrow the bounds.
"""

import os
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError, MoleError
from mole.exchange.delivery import UNFINISHED, Delivery
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.noise_check import NoiseCheck
from mole.exchange.probes import (
    MAX_PROBE_ERROR,
    Probes,
    Witnesses,
    deviation,
    probe_error,
    telling,
    tolerance,
)
from mole.exchange.shards import IMAGE_INT8, SCALES, STORED_SCALES, Shard
from mole.exchange.signatures import SIGNATURE, check_delivery
from mole.exchange.split_roles import rows_by_split
from mole.foreign_text import AT_MOST, listed, shown
from mole.progress import Progress, no_progress
from mole.quantities import counted, size_text
from mole.scheme.augmented import AugmentedLayer
from mole.storage.identities import Identity
from mole.storage.stores import Store, digest_of

Answer = tuple[bool | None, str]
ANOTHER = "ask its sender for another delivery"


class Check(NamedTuple):
    """One thing that was checked: what, whether it holds, and how it holds or why it does not.

    `holds` is None where nothing wrong was found and some of it could not be checked.
    """

    what: str
    holds: bool | None
    detail: str


def verify(
    delivery: Delivery | Store | str | os.PathLike[str],
    *,
    identity: Identity | None = None,
    signer: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> list[Check]:
    """Check everything about a delivery that can be checked without the key.

    Args:
        delivery: an opened delivery, or its folder, URL or store.
        identity: what opens a sealed delivery: see `Delivery.open`.
        signer: whose signature it has to carry: a public key of OpenSSH's, its file, or a file of allowed
            signers. Without one a signature is told of, and whether it is of this delivery; whether it is
            the sender's remains not checked. Where nothing is signed and no signer given, nothing is said.
        progress: called with the bytes that were checked and all of them.

    Raises:
        DeliveryError: if there is no manifest to check against.
    """
    opened = Delivery.open(delivery, identity=identity)
    manifest = opened.manifest
    checks = [Check("manifest", True, f"{manifest.rows} rows, made by '{shown(manifest.tool)}'")]
    if signer is not None or SIGNATURE in opened.store.names():
        checks.append(_checked("signature", lambda: _signature(opened, signer)))
    if checks[-1].holds is False:
        return checks  # what is not its sender's is not parsed
    checks.append(_checked("files", lambda: _files(opened, progress)))
    if not checks[-1].holds:
        return checks  # what is damaged needs no further reading
    if not opened.has_layer and manifest.probe_error is None:
        alone = _Seen.of(opened)
        rows = _checked("rows", lambda: _rows(opened, {}, alone))
        return [*checks, rows, *_noise(opened, alone)]
    try:
        fit = _Fit.of(opened)
    except MoleError as error:
        return [*checks, Check("augmented layer", False, str(error))]
    seen = _Seen.of(opened)
    return [
        *checks,
        _checked("rows", lambda: _rows(opened, fit.witnesses.row_ids(), seen)),
        *_noise(opened, seen),
        _checked("augmented layer", fit.layer),
        _checked("data", lambda: fit.data(seen)),
    ]


def _checked(what: str, work: Callable[[], Answer]) -> Check:
    try:
        return Check(what, *work())
    except MoleError as error:
        return Check(what, False, str(error))


def _signature(delivery: Delivery, signer: str | os.PathLike[str] | None) -> Answer:
    told = check_delivery(delivery, signer)
    if signer is None:
        return None, f"{told}; give the signer you expect to check that it is this one"
    return True, told


def _files(delivery: Delivery, progress: Progress) -> Answer:
    store, files = delivery.store, delivery.manifest.files
    names = store.names() - {MANIFEST, SIGNATURE, UNFINISHED}
    problems = [f"{shown(name)} is missing" for name in sorted(set(files) - names)]
    problems += [f"{shown(name)} does not belong here" for name in sorted(names - set(files))]
    total = sum(facts.bytes for facts in files.values())
    done = 0
    for name, facts in files.items():
        if name in names and digest_of(store, name) != (facts.sha256, facts.bytes):
            problems.append(f"{shown(name)} is damaged")
        done += facts.bytes
        progress(done, total)
    if problems:
        return False, _told(problems)
    return True, f"{counted(len(files), 'file')}, {size_text(total)}, every checksum right"


class _Seen(NamedTuple):
    """What is set aside while the shards are read.

    Attributes:
        witnessed: the witnesses' rows.
        blank: shards that are zero throughout.
        noise: of a protected delivery, how the rows of each split spread.
    """

    witnessed: dict[int, npt.NDArray[Any]]
    blank: set[int]
    noise: dict[str, NoiseCheck]

    @classmethod
    def of(cls, delivery: Delivery) -> "_Seen":
        """Nothing yet."""
        protection = delivery.manifest.protection
        certificates = {} if protection is None else protection.certificates
        return cls({}, set(), {split: NoiseCheck(one) for split, one in certificates.items()})


def _rows(delivery: Delivery, wanted: dict[int, str], seen: _Seen) -> Answer:
    """Check every row, and set aside the witnesses' rows, if they are there, on the way."""
    problems: list[str] = []
    number = 0
    for split, facts in delivery.manifest.splits.items():
        ids: set[str] = set()
        rows = 0
        for shard in delivery.shards(split):
            rows += len(shard.values)
            ids.update(shard.row_ids)
            if wanted.get(number) in shard.row_ids:
                seen.witnessed[number] = shard.values[shard.row_ids.index(wanted[number])].copy()
            if not np.count_nonzero(shard.values):  # silent about a NaN, which is told of below
                seen.blank.add(number)
            if split in seen.noise:
                seen.noise[split].see(delivery.encoding.decode(shard.values))
            number += 1
            named = f"split '{shown(split)}' has"
            problems += [f"{named} {problem}" for problem in _problems(shard, delivery)]
        if rows != facts.rows or len(ids) != rows:
            problems.append(f"split '{shown(split)}' has {rows} rows, {len(ids)} of them different")
    if problems:
        return False, _told(dict.fromkeys(problems))
    return True, listed(f"{rows} {split}" for split, rows in rows_by_split(delivery).items())


def _noise(delivery: Delivery, seen: _Seen) -> list[Check]:
    """Whether the noise of a protected delivery is there; nothing about others."""
    if not seen.noise:
        return []
    problems = [
        f"split '{shown(split)}': {problem}"
        for split, check in seen.noise.items()
        if (problem := check.problem())
    ]
    if problems:
        return [Check("noise", False, _told(problems) + f": {ANOTHER}")]
    protection = delivery.manifest.protection
    assert protection is not None  # noqa: S101  (there is noise)
    told = listed(f"{one.bits:.4g} bits a row in {split}" for split, one in protection.certificates.items())
    return [Check("noise", True, f"rows spread as noise does that leaves at most {told}")]


def _told(problems: Collection[str]) -> str:
    """Problems in one line, the first few of them; foreign names in them are fit to be shown already."""
    few = "; ".join(islice(problems, AT_MOST))
    return few if len(problems) <= AT_MOST else f"{few}; and {len(problems) - AT_MOST} more"


def _problems(shard: Shard, delivery: Delivery) -> list[str]:
    """What is wrong with the values and labels of a shard."""
    problems = [] if np.isfinite(shard.values).all() else ["a NaN or an infinity"]
    classes, labels = delivery.manifest.classes, shard.labels
    if classes and labels is not None and not ((labels >= 0) & (labels < len(classes))).all():
        problems.append("a label without a class")
    if delivery.manifest.column == IMAGE_INT8:
        scales = delivery.encoding.metadata()
        if shard.metadata.get(STORED_SCALES) != scales.get(STORED_SCALES):
            problems.append(f"a shard with other scales than {SCALES}")
    return problems


class _Fit(NamedTuple):
    """What is needed to see whether the layer fits the data."""

    delivery: Delivery
    expected: float
    augmented: AugmentedLayer
    probes: Probes
    witnesses: Witnesses

    @classmethod
    def of(cls, delivery: Delivery) -> "_Fit":
        layer, expected = delivery.layer(), delivery.manifest.probe_error
        if layer is None:
            raise DeliveryError("the manifest has an error of its probes, and lists no layer: " + ANOTHER)
        if expected is None:
            raise DeliveryError("the manifest lists it, and has no error of its probes: " + ANOTHER)
        if not 0 <= expected <= MAX_PROBE_ERROR:
            raise DeliveryError(
                f"the manifest allows its features to be off by {100 * expected:.0f} %, and more than "
                f"{100 * MAX_PROBE_ERROR:.0f} % is of no use: {ANOTHER}"
            )
        return cls(delivery, expected, layer, *delivery.probes())

    def layer(self) -> Answer:
        """Whether the layer belongs here, and turns the probes into their features."""
        augmented, manifest = self.augmented, self.delivery.manifest
        facts = ("key_fingerprint", "input_shape", "output_shape", "kappa", "layout", "plain_shape")
        if any(getattr(augmented, name) != getattr(manifest, name) for name in facts):
            return False, "it belongs to another delivery"
        error = probe_error(self.probes, augmented, self.delivery.encoding)
        limit = max(2 * self.expected, 1e-5)
        if not error <= limit:
            return False, (
                "it does not fit the probes, made-up images that come with their features: it is off by "
                f"{error:.1e} of their size, and at most {limit:.1e} is right"
            )
        return True, (
            "it fits the probes, made-up images that come with their features: it is off by "
            f"{error:.1e} of their size"
        )

    def data(self, seen: _Seen) -> Answer:
        """Whether the layer finds the witnesses' features in their shards."""
        names = self.delivery.shard_names()
        misfits = self._misfits(seen.witnessed)
        if misfits:
            named = listed(names[number] for number in misfits)
            return False, f"{named}: not made with the key of the augmented layer"
        fitting = set(self.witnesses.shards.tolist())
        unknown = [name for number, name in enumerate(names) if number not in fitting | seen.blank]
        blank = len(seen.blank - fitting)
        told = (
            f"{len(fitting)} of {len(names)} shards were tested, on one row each, and the layer fits them"
        )
        if not fitting:
            told = "no shard could be tested"
        if blank:
            told += f"; {blank} hold zeros alone, which any layer fits"
        if unknown:
            first = shown(unknown[0]) + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else "")
            return None, f"{told}; nothing shows whether the layer fits {first}"
        return True, told

    def _misfits(self, witnessed: dict[int, npt.NDArray[Any]]) -> list[int]:
        """Shards in which the witness's row, or its features, are not found."""
        shards = self.witnesses.shards.tolist()
        absent = [number for number in shards if number not in witnessed]
        if absent or not shards:
            return absent
        encoding = self.delivery.encoding
        rows = encoding.decode(np.stack([witnessed[number] for number in shards]))
        off = deviation(self.witnesses, rows, self.augmented)
        usual = tolerance(self.witnesses.features, rows, self.probes, encoding, self.expected)
        allowed = np.minimum(usual, telling(self.witnesses, self.augmented))
        fits = np.isfinite(off) & (off <= allowed)
        return [number for number, holds in zip(shards, fits.tolist(), strict=True) if not holds]
