"""Make a delivery: key + first layer + source -> morphed shards, augmented layer, manifest.

    made = deliver("photos", "first-layer.safetensors", key, "delivery", dtype="int8", resize="crop")
    made.delivery.manifest.rows, made.skipped

Work that was interrupted goes on where it stood. What an unfinished delivery is made from is pinned by a
keyed digest in `unfinished.json`, so another key, layer, source or option is refused.
"""

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal, get_args

from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.delivery import UNFINISHED, Delivery
from mole.exchange.layer_files import load_first_layer
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.exchange.shards import Dtype
from mole.exchange.signatures import sign_delivery
from mole.limits import MAX_JSON_BYTES
from mole.progress import Progress, no_progress
from mole.provider.class_names import asked_for, handed_over_by, what_leaves
from mole.provider.copying import refuse_copying
from mole.provider.delivery_maker import DeliveryMaker, Engine, write_here
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.plan import Plan
from mole.provider.ray_engine import RayEngine, check_ray
from mole.provider.remarks import ask_ledger, warn_of_clipping, warn_of_source
from mole.provider.row_numbers import RowNumbers
from mole.provider.sealing import delivery_store
from mole.provider.shard_maker import why_left_out
from mole.scheme.augmented import LayerDtype
from mole.scheme.first_layer import FirstLayer
from mole.sources.opening import read_source
from mole.sources.preparation import Mode, Resize
from mole.sources.reading import Bits, Reading, Window
from mole.sources.source import BadSampleError, Source, without_labels
from mole.storage.identities import recipient_texts
from mole.storage.locations import absolute
from mole.storage.sealed import SealedStore
from mole.storage.signing import SigningKey
from mole.storage.stores import LocalStore, Store, read_at_most
from mole.storage.typed_json import FormatError, parse_json

EngineName = Literal["local", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
Address = str | os.PathLike[str]


@dataclass(frozen=True)
class Delivered:
    """A finished delivery, and what the provider should know of how it was made.

    Attributes:
        delivery: the delivery, opened.
        skipped: the samples that were left out, each with the reason.
        source_kind: what the data was read as, in a word or two.
        has_labels: whether labels leave with it.
        labels_from: what gave them, if it was not the data itself: a table, or a DICOM tag.
    """

    delivery: Delivery
    skipped: tuple[BadSampleError, ...]
    source_kind: str
    has_labels: bool
    labels_from: str | None = None


def deliver(
    source: Address | Source,
    layer: Address | FirstLayer,
    key: MorphKey,
    out: Address | Store,
    *,
    dtype: Dtype = "float32",
    layer_dtype: LayerDtype | None = "float32",
    mode: Mode | None = None,
    resize: Resize | None = None,
    keep: Sequence[str] = (),
    skip_bad: bool = False,
    class_names: bool | None = None,
    labels: bool | Address | None = None,
    label_column: str | None = None,
    label_tag: str | None = None,
    window: Window | None = None,
    bits: Bits = 8,
    allow_copying_layer: bool = False,
    rows_per_shard: int | None = None,
    engine: EngineName = "local",
    ray_address: str | None = None,
    recipients: Sequence[str] = (),
    sign: SigningKey | Address | None = None,
    allow_second_layer: bool = False,
    progress: Progress = no_progress,
) -> Delivered:
    """Make a delivery, or go on with an unfinished one, and record it in the key's ledger.

    Args:
        source: the provider's data: its path or URL, or an opened source.
        layer: the developer's first layer, or its file.
        key: the provider's key. One that was never saved has its ledger in the user's folder only.
        out: where the delivery goes: a folder, a URL or a store.
        dtype: how morphed values are stored: 'float32', 'float16' or 'int8'.
        layer_dtype: how the augmented layer is stored: 'float32' or 'float16'; None to leave it out, for
            further data under a key whose augmented layer the developer has.
        mode: 'L' or 'RGB' to convert colours; None to leave them.
        resize: 'crop' or 'stretch' to bring images to the layer's size; None refuses those of another.
        keep: further columns to hand over.
        skip_bad: leave out samples that cannot be read, instead of stopping at the first.
        class_names: hand over the names of the classes; None does so only where they hardly are people's
            (`mole.provider.class_names`).
        labels: hand over labels, from a table if its path is given; None does so unless they are made of
            the folders of DICOM files, whose names were not asked for. Without labels no names of classes
            leave either.
        label_column: which column of the table has the labels; None for 'label'.
        label_tag: the element of DICOM headers that is the label.
        window: of DICOM files, as a centre and a width, or 'none'; None for that of each header.
        bits: of DICOM files: 8 or 16.
        allow_copying_layer: augment a layer even if it copies pixels (`mole.provider.copying`).
        rows_per_shard: rows in a shard, at most; None for about 64 MB of 32-bit values.
        engine: what writes the shards: 'local' for this machine, 'ray' for the machines of a Ray cluster.
        ray_address: of a running cluster, as host:port, which gets the key; None for a Ray of its own on
            this machine.
        recipients: seal the delivery for these age recipients (age1..., or ssh-ed25519 public keys).
        sign: an Ed25519 key of OpenSSH's, or its file, to sign the manifest with, which has every digest.
        allow_second_layer: use the key for this first layer though it was used for another one before.
        progress: called with the rows done and the rows to do.

    Warns:
        MoleWarning: if the key is used for a second first layer, its file holds another key than before,
            files are left out, names of classes stay, 8 bits cut values off, or the ledger cannot be
            written in one of its places.
        PrivacyWarning: if text may be burned into the pixels of DICOM files.

    Raises:
        DeliveryError: if the key was used for another first layer before and that is not allowed,
            something else lies there, somebody else writes there, or the result would be of no use.
        ParameterError: if the layer copies pixels, or an option cannot be used.
        BadSampleError: at the first sample that cannot be read, unless skip_bad.
    """
    sealed_for = recipient_texts(recipients)
    signing = SigningKey.load(sign) if isinstance(sign, str | os.PathLike) else sign
    first = load_first_layer(layer)
    if layer_dtype is not None and not allow_copying_layer:
        refuse_copying(first, "the first layer" if isinstance(layer, FirstLayer) else os.fspath(layer))
    ledger = Ledger(key.fingerprint, key.path)
    ask_ledger(ledger, first.fingerprint, is_second_allowed=allow_second_layer)
    write_shards = _engine(engine, ray_address, source, out)
    reading = Reading.of(labels, label_column=label_column, label_tag=label_tag, window=window, bits=bits)
    opened = read_source(source, reading)
    leaving = what_leaves(opened, class_names=class_names, labels=asked_for(labels))
    if leaving.kept:
        parameter = handed_over_by(class_names)
        warnings.warn(f"{leaving.kept}; {parameter}=True hands them over", MoleWarning, stacklevel=2)
        opened = opened if leaving.labels else without_labels(opened)
    plan = Plan(
        source=opened, key=key, layer=first, dtype=dtype, layer_dtype=layer_dtype, mode=mode,
        resize=resize, keep=tuple(keep), skip_bad=skip_bad, class_names=leaving.class_names,
        labels=leaving.labels, reading=replace(reading.for_other_processes, labels=leaving.labels),
        rows_per_shard=rows_per_shard, recipients=sealed_for,
        source_address=None if engine == "local" or isinstance(source, Source) else absolute(source),
    )  # fmt: skip
    warn_of_source(opened)
    store = delivery_store(out, plan.recipients, key)
    with _alone_in(store, plan.delivery_id):
        is_finished = _claim(store, plan.delivery_id)
        try:
            maker = DeliveryMaker(plan, opened, key, store)
            manifest = Manifest.read(store) if is_finished else maker.make(write_shards, progress)
            delivery = Delivery(store, manifest)
            skipped = _skipped(delivery, plan, opened, key)
            if signing is not None:
                sign_delivery(store, signing)
        except BaseException:
            _give_up_if_nothing_is_lost(store)
            raise
    for failure in ledger.record(manifest, [bad.name for bad in skipped]):
        warnings.warn(failure, MoleWarning, stacklevel=2)
    warn_of_clipping(manifest)
    has_labels = any(split.labels is not None for split in opened.splits.values())
    return Delivered(delivery, skipped, opened.kind, has_labels, opened.labels_from)


def _engine(
    name: EngineName, ray_address: str | None, source: Address | Source, out: Address | Store
) -> Engine:
    """What writes shards; an error if it could not, before any work is done."""
    if name not in ENGINES:
        raise ParameterError(f"engine '{name}' is unknown", advice={"engine": ENGINES})
    if name == "local":
        if ray_address is not None:
            raise ParameterError("a Ray address is for the engine that uses Ray", advice={"engine": "ray"})
        return write_here
    if isinstance(source, Source):
        raise ParameterError("Ray's workers open the data themselves: give its path or URL as the source")
    if not isinstance(out, str | os.PathLike):
        raise ParameterError("Ray's workers open the delivery themselves: give its path or URL as `out`")
    check_ray(ray_address)
    return RayEngine(ray_address)


@contextmanager
def _alone_in(store: Store, delivery_id: str) -> Iterator[None]:
    """Keep others from writing there; no matter who does where this very delivery lies finished."""
    with ExitStack() as work:
        try:
            work.enter_context(store.locked())
        except DeliveryError:
            if MANIFEST not in store.names() or Manifest.read(store).delivery_id != delivery_id:
                raise
        yield


def _claim(store: Store, delivery_id: str) -> bool:
    """Take the place for this delivery; whether it lies there finished already."""
    names = store.names()
    if MANIFEST in names:
        if Manifest.read(store).delivery_id != delivery_id:
            raise DeliveryError(f"{store.label} holds another delivery already: choose another place")
        if UNFINISHED in names:
            store.remove(UNFINISHED)
        return True
    if UNFINISHED in names:
        try:
            found = parse_json(read_at_most(store, UNFINISHED, MAX_JSON_BYTES))
            same = found.text("delivery_id") == delivery_id
        except FormatError:
            same = False
        if not same:
            raise DeliveryError(
                f"{store.label} holds an unfinished delivery with another key, layer, source or option: "
                "repeat that call, or choose another place"
            )
        return False
    if names:
        raise DeliveryError(f"{store.label} is not empty: choose another place")
    store.write(UNFINISHED, json.dumps({"delivery_id": delivery_id}).encode())
    return False


def _give_up_if_nothing_is_lost(store: Store) -> None:
    """After a failure before the first shard, leave the place as it was, free for another try."""
    with suppress(DeliveryError, OSError):
        names = store.names()
        if MANIFEST in names or any(name.startswith("data/") for name in names):
            return
        for name in names:
            store.remove(name)
        if isinstance(store, SealedStore):
            store = store.inner
        if isinstance(store, LocalStore) and (store.folder / "data").exists():
            (store.folder / "data").rmdir()


def _skipped(delivery: Delivery, plan: Plan, source: Source, key: MorphKey) -> tuple[BadSampleError, ...]:
    """The samples that were left out, in the order of the source, and why.

    It looks at what was delivered, so that work which was interrupted and went on later counts too.
    """
    skipped = []
    for name, facts in delivery.manifest.splits.items():
        if facts.rows < facts.samples:
            missing = RowNumbers.of(delivery, key, name).missing(delivery.row_ids(name))
            skipped += [why_left_out(plan, source.splits[name], sample) for sample in missing]
    return tuple(skipped)
