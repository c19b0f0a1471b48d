"""Make a delivery: key + first layer + source -> morphed shards, augmented layer, manifest.

Work that was interrupted goes on where it stood: a shard that is there is complete, and the manifest comes
last. What an unfinished delivery was made from is pinned by a keyed digest in `unfinished.json`, so another
key, layer, source or option is refused.
"""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np

from mole.errors import DeliveryError, ParameterError, SourceError
from mole.exchange.delivery import AUGMENTED, SCALES, UNFINISHED, load_encoding, save_encoding
from mole.exchange.encoding import Encoding
from mole.exchange.layer_files import save
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.exchange.probes import Probes, probe_error, save_probes
from mole.progress import Progress, no_progress
from mole.provider.finishing import count_rows, write_card, write_manifest
from mole.provider.kept_columns import kept_types
from mole.provider.keys import MorphKey
from mole.provider.local_engine import write_shards
from mole.provider.plan import Options, Order
from mole.provider.row_numbers import skipped_samples
from mole.provider.shard_maker import ShardJob, ShardMaker, read_sample
from mole.provider.verbs import augment
from mole.provider.witnesses import WitnessMaker, make_probes
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, Shape, element_count
from mole.sources.source import BadSampleError, Source
from mole.storage.stores import LocalStore, Store

SHARD_BYTES = 1 << 26  # of 32-bit values: large products, and little memory
SCALE_SAMPLE = 4096
MAX_PROBE_ERROR = 0.1
Engine = Callable[[ShardMaker, list[ShardJob], Encoding, Store, Progress], None]


@dataclass(frozen=True)
class Delivered:
    """A finished delivery, and the samples that were left out of it."""

    manifest: Manifest
    skipped: tuple[BadSampleError, ...]


def deliver(
    source: Source,
    layer: FirstLayer,
    key: MorphKey,
    store: Store,
    options: Options | None = None,
    *,
    engine: Engine = write_shards,
    progress: Progress = no_progress,
) -> Delivered:
    """Make a delivery, or go on with an unfinished one.

    Args:
        source: the provider's data.
        layer: the developer's first layer.
        key: the provider's key.
        store: where the delivery goes.
        options: the provider's choices.
        engine: what writes the shards: on this machine, or a `RayEngine`.
        progress: called with the rows done and the rows to do.

    Raises:
        DeliveryError: if something else lies there, or the result would be of no use.
        BadSampleError: at the first sample that cannot be read, unless options.skip_bad.
    """
    options = options or Options()
    _check(source, layer, key, options)
    delivery_id = _delivery_id(source, layer, key, options)
    order = Order(source, layer, key, store, options, delivery_id)
    is_finished = _claim(store, delivery_id)
    try:
        manifest = Manifest.read(store) if is_finished else _make(order, engine, progress)
        return Delivered(manifest, skipped_samples(order, manifest.splits))
    except BaseException:
        _give_up_if_nothing_is_lost(store)
        raise


def _make(order: Order, engine: Engine, progress: Progress) -> Manifest:
    """All files of a delivery, in the order in which they can be made."""
    source, layer, key, store, options = order.source, order.layer, order.key, order.store, order.options
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="decode") as decoders:
        maker = ShardMaker(
            source, key, order.preparation, order.delivery_id,
            keep=options.keep, skip_bad=options.skip_bad, decoders=decoders,
        )  # fmt: skip
        jobs = _jobs(source, layer.input_shape, options)
        maker.read(replace(jobs[0], stop=1))  # a mistake in shape or mode shows before the hard work
        encoding = _encoding(order, maker, jobs)
        probes, error = _augmented_layer(layer, key, encoding, store, options)
        engine(maker, jobs, encoding, store, progress)
    splits = count_rows(order, jobs)
    if not any(facts.rows for facts in splits.values()):
        for job in jobs:
            store.remove(job.name)
        raise _nothing_usable(order)
    if probes is not None and error is not None:
        witnesses = WitnessMaker(maker, layer, key, encoding, probes).make(jobs, store, error)
        save_probes(probes, witnesses, store)
    write_card(order, splits)
    manifest = write_manifest(order, splits, error)
    store.remove(UNFINISHED)
    return manifest


def _nothing_usable(order: Order) -> SourceError:
    split = next(iter(order.source.splits.values()))
    first = read_sample(split, 0, order.preparation)
    return SourceError(f"not one of {order.source.count} samples can be used, so nothing is left: {first}")


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


def _check(source: Source, layer: FirstLayer, key: MorphKey, options: Options) -> None:
    if key.input_shape != layer.input_shape:
        raise ParameterError(
            f"the key morphs samples of shape {key.input_shape} and the layer takes {layer.input_shape}: "
            "make a key for this layer"
        )
    Encoding(options.dtype, np.ones(1, np.float32) if options.dtype == "int8" else None)
    kept_types(source, options.keep)
    if source.unread and not options.skip_bad:
        raise SourceError(
            f"{len(source.unread)} image files are of a kind that cannot be read, such as "
            f"{source.unread[0]}: convert them, or leave them out with --skip-bad"
        )


def _delivery_id(source: Source, layer: FirstLayer, key: MorphKey, options: Options) -> str:
    """What this delivery is made from, in a digest that only the holder of the key can compute."""
    sizes = {name: len(split) for name, split in source.splits.items()}
    facts = [source.fingerprint, sizes, layer.fingerprint, key.fingerprint, asdict(options)]
    return key.sign("delivery", json.dumps(facts, sort_keys=True))


def _claim(store: Store, delivery_id: str) -> bool:
    """Take the place for this delivery; True if it lies there finished already."""
    names = store.names()
    if MANIFEST in names:
        if Manifest.read(store).delivery_id != delivery_id:
            raise DeliveryError(f"{store.label} holds another delivery already: choose another place")
        if UNFINISHED in names:
            store.remove(UNFINISHED)
        return True
    if UNFINISHED in names:
        try:
            same = json.loads(store.read(UNFINISHED)).get("delivery_id") == delivery_id
        except (ValueError, AttributeError):
            same = False
        if not same:
            raise DeliveryError(
                f"{store.label} holds an unfinished delivery with another key, layer, source or option: "
                "repeat that command, or choose another place"
            )
        return False
    if names:
        raise DeliveryError(f"{store.label} is not empty: choose another place")
    store.write(UNFINISHED, json.dumps({"delivery_id": delivery_id}).encode())
    return False


def _augmented_layer(
    layer: FirstLayer, key: MorphKey, encoding: Encoding, store: Store, options: Options
) -> tuple[Probes, float] | tuple[None, None]:
    """Write the augmented layer, unless it is there; its probes, and the error of its features on them."""
    if options.layer_dtype is None:
        return None, None
    augmented = augment(layer, key, dtype=options.layer_dtype)
    probes = make_probes(layer, key, encoding)
    error = probe_error(probes, augmented, encoding)
    if not error <= MAX_PROBE_ERROR:
        raise DeliveryError(
            f"with core '{key.core}' and {encoding.dtype} data the features would be off by "
            f"{100 * error:.0f} %: use core 'orthogonal' or dtype 'float32'"
        )
    if AUGMENTED not in store.names():
        store.make(AUGMENTED, lambda path: save(augmented, path))
    return probes, float(f"{error:.3g}")


def _jobs(source: Source, shape: Shape, options: Options) -> list[ShardJob]:
    """Shards of each split, all of about the same size, so that cores which share them end together."""
    at_most = options.rows_per_shard or max(1, SHARD_BYTES // (4 * element_count(shape)))
    jobs = []
    for name, split in source.splits.items():
        count = -(-len(split) // at_most)
        edges = [len(split) * index // count for index in range(count + 1)]
        jobs += [
            ShardJob(name, index, count, start, stop) for index, (start, stop) in enumerate(pairwise(edges))
        ]
    return jobs


def _encoding(order: Order, maker: ShardMaker, jobs: list[ShardJob]) -> Encoding:
    """The encoding; 8-bit scales come from the first shards: in their secret order a random sample."""
    store, dtype = order.store, order.options.dtype
    if dtype != "int8" or SCALES in store.names():
        return load_encoding(store, dtype)
    sample: list[Array] = []
    for job in jobs:
        if sum(map(len, sample)) < SCALE_SAMPLE:
            sample.append(maker.morphed(maker.read(job)))
    if not sum(map(len, sample)):
        raise _nothing_usable(order)
    encoding = Encoding.fit(dtype, np.concatenate(sample))
    save_encoding(store, encoding)
    return encoding
