"""The files of a delivery, in the order in which they can be made; the manifest comes last.

A file that is there is complete, so work that was interrupted goes on with those that are missing.
"""

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np

from mole.errors import DeliveryError, SourceError
from mole.exchange.delivery import AUGMENTED, SCALES, UNFINISHED, load_encoding, save_encoding
from mole.exchange.encoding import Encoding
from mole.exchange.layer_files import write_layer
from mole.exchange.manifest import CARD, FileFacts, Manifest, SplitFacts, dataset_card
from mole.exchange.probes import Probes, probe_error, save_probes
from mole.exchange.shards import ShardFile, common_dtype
from mole.progress import Progress
from mole.provider.keys import MorphKey
from mole.provider.plan import Plan, ShardJob
from mole.provider.shard_maker import ShardMaker, why_left_out
from mole.provider.verbs import augment
from mole.provider.witnesses import WitnessMaker, make_probes
from mole.scheme.shapes import Array
from mole.sources.source import Source
from mole.storage.stores import Store, digest_of

SCALE_SAMPLE = 4096
MAX_PROBE_ERROR = 0.1
Engine = Callable[[ShardMaker, Sequence[ShardJob], Encoding, Store], Generator[int, None, None]]
"""Writes shards, and gives the rows of each as soon as it is written."""


class DeliveryMaker:
    """Makes one delivery from a plan."""

    def __init__(self, plan: Plan, source: Source, key: MorphKey, store: Store) -> None:
        self._plan, self._source, self._key, self._store = plan, source, key, store

    def make(self, engine: Engine, progress: Progress) -> Manifest:
        """Make every file that is missing."""
        with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="decode") as decoders:
            maker = ShardMaker(self._plan, self._source, self._key, decoders=decoders)
            maker.read(replace(self._plan.jobs[0], stop=1))  # a wrong shape shows before the hard work
            encoding = self._encoding(maker)
            probes, error = self._augmented_layer(encoding)
            self._write_shards(engine, maker, encoding, progress)
        splits = self._splits()
        if probes is not None and error is not None:
            witnesses = WitnessMaker(maker, encoding, probes).make(self._store, error)
            save_probes(probes, witnesses, self._store)
        manifest = self._write_manifest(splits, error)
        self._store.remove(UNFINISHED)
        return manifest

    def _encoding(self, maker: ShardMaker) -> Encoding:
        """The encoding; 8-bit scales come from the first shards: in their secret order a random sample."""
        dtype = self._plan.dtype
        if dtype != "int8" or SCALES in self._store.names():
            return load_encoding(self._store, dtype)
        sample: list[Array] = []
        for job in self._plan.jobs:
            if sum(map(len, sample)) < SCALE_SAMPLE:
                sample.append(maker.morphed(maker.read(job).plain))
        if not sum(map(len, sample)):
            raise self._nothing_usable()
        encoding = Encoding.fit(dtype, np.concatenate(sample))
        save_encoding(self._store, encoding)
        return encoding

    def _augmented_layer(self, encoding: Encoding) -> tuple[Probes, float] | tuple[None, None]:
        """Write the augmented layer, unless it is there; its probes, and its features' error on them."""
        layer, key = self._plan.layer, self._key
        if self._plan.layer_dtype is None:
            return None, None
        augmented = augment(layer, key, dtype=self._plan.layer_dtype)
        probes = make_probes(layer, key, encoding)
        error = probe_error(probes, augmented, encoding)
        if not error <= MAX_PROBE_ERROR:
            raise DeliveryError(
                f"with core '{key.core}' and {encoding.dtype} data the features would be off by "
                f"{100 * error:.0f} %: use a key with core='orthogonal', or dtype='float32'"
            )
        if AUGMENTED not in self._store.names():
            self._store.make(AUGMENTED, lambda path: write_layer(augmented, path))
        return probes, float(f"{error:.3g}")

    def _write_shards(
        self, engine: Engine, maker: ShardMaker, encoding: Encoding, progress: Progress
    ) -> None:
        present = self._store.names()
        missing = [job for job in self._plan.jobs if job.name not in present]
        total = sum(job.rows for job in self._plan.jobs)
        done = total - sum(job.rows for job in missing)
        progress(done, total)
        with closing(engine(maker, missing, encoding, self._store)) as written:
            for rows in written:
                done += rows
                progress(done, total)

    def _splits(self) -> dict[str, SplitFacts]:
        """Rows that are really there: some samples may have been skipped, in this run or an earlier one."""
        splits = {}
        for name, size in self._plan.sizes.items():
            files = [ShardFile(self._store, job.name) for job in self._plan.jobs if job.split == name]
            shards = [file.facts() for file in files]
            splits[name] = SplitFacts(
                samples=size,
                rows=sum(shard.rows for shard in shards),
                shards=len(shards),
                source_dtype=common_dtype([shard.source_dtype for shard in shards]),
            )
        if not any(facts.rows for facts in splits.values()):
            for job in self._plan.jobs:
                self._store.remove(job.name)
            raise self._nothing_usable()
        return splits

    def _write_manifest(self, splits: dict[str, SplitFacts], error: float | None) -> Manifest:
        """Write the card, and the manifest with a checksum of every file; `error` is that of the probes."""
        plan, key, store = self._plan, self._key, self._store
        card = dataset_card(plan.layer.input_shape, plan.dtype, splits, plan.classes)
        store.write(CARD, card.encode())
        digests = {name: digest_of(store, name) for name in sorted(store.names() - {UNFINISHED})}
        manifest = Manifest(
            delivery_id=plan.delivery_id,
            key_fingerprint=key.fingerprint,
            layer_fingerprint=plan.layer.fingerprint,
            input_shape=plan.layer.input_shape,
            output_shape=plan.layer.output_shape,
            kappa=key.kappa,
            layout=key.parameters.layout,
            dtype=plan.dtype,
            probe_error=error,
            normalisation=plan.layer.normalisation,
            mode=plan.mode,
            resize=plan.resize,
            classes=plan.classes,
            columns=plan.keep,
            splits=splits,
            files={name: FileFacts(bytes=size, sha256=digest) for name, (digest, size) in digests.items()},
        )
        manifest.write(store)
        return manifest

    def _nothing_usable(self) -> SourceError:
        first = why_left_out(self._plan, next(iter(self._source.splits.values())), 0)
        return SourceError(
            f"not one of {self._source.count} samples can be used, so nothing is left: {first.message}",
            advice=first.advice,
        )
