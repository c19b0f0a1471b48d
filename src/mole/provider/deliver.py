"""Make a delivery: key + first layer + source -> morphed shards, augmented layer, manifest.

    made = deliver("photos", "first-layer.safetensors", key, "delivery", dtype="int8", resize="crop")
    made.delivery.manifest.rows, made.skipped

Work that was interrupted goes on where it stood. What an unfinished delivery is made from is pinned by a
keyed digest in `unfinished.json`, so another key, layer, source or option is refused.
"""

import json
import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, get_args

from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.delivery import UNFINISHED, Delivery
from mole.exchange.layer_files import load_first_layer
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.exchange.shards import Dtype
from mole.progress import Progress, no_progress
from mole.provider.class_names import what_leaves
from mole.provider.copying import refuse_copying
from mole.provider.delivery_maker import DeliveryMaker, Engine, write_here
from mole.provider.keys import MorphKey
from mole.provider.ledger import delivery_warnings, record
from mole.provider.plan import Plan, opened_source
from mole.provider.ray_engine import RayEngine, check_ray
from mole.provider.row_numbers import RowNumbers
from mole.provider.shard_maker import why_left_out
from mole.scheme.augmented import LayerDtype
from mole.scheme.first_layer import FirstLayer
from mole.sources.preparation import Mode, Resize
from mole.sources.source import BadSampleError, Source, without_labels
from mole.storage.locations import absolute
from mole.storage.stores import LocalStore, Store, open_store

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
    """

    delivery: Delivery
    skipped: tuple[BadSampleError, ...]
    source_kind: str
    has_labels: bool


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
    labels: bool = True,
    allow_copying_layer: bool = False,
    rows_per_shard: int | None = None,
    engine: EngineName = "local",
    ray_address: str | None = None,
    progress: Progress = no_progress,
) -> Delivered:
    """Make a delivery, or go on with an unfinished one, and record it in the ledger beside the key.

    Args:
        source: the provider's data: its path or URL, or an opened source.
        layer: the developer's first layer, or its file.
        key: the provider's key. One that was never saved or loaded has no ledger.
        out: where the delivery goes: a folder, a URL or a store.
        dtype: how morphed values are stored: 'float32', 'float16' or 'int8'.
        layer_dtype: how the augmented layer is stored: 'float32' or 'float16'; None to leave it out, for
            further data under a key whose augmented layer the developer has.
        mode: 'L' or 'RGB' to convert colours; None to leave them.
        resize: 'crop' or 'stretch' to bring images to the layer's size; None refuses those of another.
        keep: further columns to hand over.
        skip_bad: leave out samples that cannot be read, instead of stopping at the first.
        class_names: hand over the names of the classes; None does so only where they hardly are people's
            (`mole.provider.class_names`), and hands over no labels made of the folders of DICOM files.
        labels: hand over labels; without them no names of classes leave either.
        allow_copying_layer: augment a layer even if it copies pixels (`mole.provider.copying`).
        rows_per_shard: rows in a shard, at most; None for about 64 MB of 32-bit values.
        engine: what writes the shards: 'local' for this machine, 'ray' for the machines of a Ray cluster.
        ray_address: of a running cluster, as host:port; None for a Ray on this machine.
        progress: called with the rows done and the rows to do.

    Warns:
        MoleWarning: if the key was used for another first layer before, files are left out, or names of
            classes stay.

    Raises:
        DeliveryError: if something else lies there, or the result would be of no use.
        ParameterError: if the layer copies pixels, or an option cannot be used.
        BadSampleError: at the first sample that cannot be read, unless skip_bad.
    """
    first = load_first_layer(layer)
    if layer_dtype is not None and not allow_copying_layer:
        refuse_copying(first, "the first layer" if isinstance(layer, FirstLayer) else os.fspath(layer))
    _warn_of_other_layers(first.fingerprint, key)
    write_shards = _engine(engine, ray_address, source, out)
    opened = opened_source(source, labels=labels)
    leaving = what_leaves(opened, class_names=class_names, labels=labels)
    if leaving.kept:
        warnings.warn(f"{leaving.kept}; class_names=True hands them over", MoleWarning, stacklevel=2)
        opened = opened if leaving.labels else without_labels(opened)
    plan = Plan(
        source=opened, key=key, layer=first, dtype=dtype, layer_dtype=layer_dtype, mode=mode,
        resize=resize, keep=tuple(keep), skip_bad=skip_bad, class_names=leaving.class_names,
        labels=leaving.labels,
        rows_per_shard=rows_per_shard,
        source_address=None if engine == "local" or isinstance(source, Source) else absolute(source),
    )  # fmt: skip
    _warn_of_unread_files(opened)
    store, is_finished = _claim(out, plan.delivery_id)
    try:
        maker = DeliveryMaker(plan, opened, key, store)
        manifest = Manifest.read(store) if is_finished else maker.make(write_shards, progress)
        delivery = Delivery(store, manifest)
        skipped = _skipped(delivery, plan, opened, key)
    except BaseException:
        _give_up_if_nothing_is_lost(store)
        raise
    if key.path is not None:
        record(key.path, manifest, [bad.name for bad in skipped])
    has_labels = any(split.labels is not None for split in opened.splits.values())
    return Delivered(delivery, skipped, opened.kind, has_labels)


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


def _warn_of_other_layers(layer_fingerprint: str, key: MorphKey) -> None:
    """Say so before a key is used for a second developer."""
    if key.path is not None:
        for warning in delivery_warnings(key.path, key.fingerprint, layer_fingerprint):
            warnings.warn(warning, MoleWarning, stacklevel=3)


def _warn_of_unread_files(source: Source) -> None:
    if source.unread:
        warnings.warn(
            f"left out: {len(source.unread)} image files of a kind that cannot be read, such as "
            f"{source.unread[0]}",
            MoleWarning,
            stacklevel=3,
        )


def _claim(out: Address | Store, delivery_id: str) -> tuple[Store, bool]:
    """The place, taken for this delivery; and whether it lies there finished already."""
    store = open_store(os.fspath(out)) if isinstance(out, str | os.PathLike) else out
    names = store.names()
    if MANIFEST in names:
        if Manifest.read(store).delivery_id != delivery_id:
            raise DeliveryError(f"{store.label} holds another delivery already: choose another place")
        if UNFINISHED in names:
            store.remove(UNFINISHED)
        return store, True
    if UNFINISHED in names:
        try:
            same = json.loads(store.read(UNFINISHED)).get("delivery_id") == delivery_id
        except (ValueError, AttributeError):
            same = False
        if not same:
            raise DeliveryError(
                f"{store.label} holds an unfinished delivery with another key, layer, source or option: "
                "repeat that call, or choose another place"
            )
        return store, False
    if names:
        raise DeliveryError(f"{store.label} is not empty: choose another place")
    store.write(UNFINISHED, json.dumps({"delivery_id": delivery_id}).encode())
    return store, False


def _give_up_if_nothing_is_lost(store: Store) -> None:
    """After a failure before the first shard, leave the place as it was, free for another try."""
    with suppress(DeliveryError, OSError):
        names = store.names()
        if MANIFEST in names or any(name.startswith("data/") for name in names):
            return
        for name in names:
            store.remove(name)
        if isinstance(store, LocalStore):
            for folder in (store.folder / "data", store.folder):
                if folder.exists():
                    folder.rmdir()


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
