"""The files of a delivery, in the order in which they can be made; the manifest comes last.

A file that is there is complete, so interrupted work resumes with those that are missing.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace

import numpy as np

from mole.errors import DeliveryError, SourceError
from mole.exchange.card import NAME as CARD
from mole.exchange.card import dataset_card
from mole.exchange.clipping import Clipping
from mole.exchange.delivery import AUGMENTED, UNFINISHED
from mole.exchange.facts import SplitFacts
from mole.exchange.layer_files import save_into
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.exchange.probes import MAX_PROBE_ERROR, Probes, probe_error, save_probes
from mole.exchange.shard_files import ShardFacts, ShardFile
from mole.exchange.shards import (
    SCALES,
    Encoding,
    column_of,
    common_dtype,
    load_encoding,
    save_encoding,
)
from mole.exchange.signatures import SIGNATURE
from mole.progress import Progress
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment
from mole.provider.plan import Plan, ShardJob
from mole.provider.protector import Protector
from mole.provider.remarks import warn_of_front
from mole.provider.shard_maker import ShardMaker, why_left_out
from mole.provider.witnesses import WitnessMaker, smooth_images, unclipped
from mole.scheme.block_product import Product, multiply
from mole.scheme.convolution import features_of
from mole.scheme.shapes import Array, element_count, unroll
from mole.scheme.sharing_out import single_products
from mole.sources.source import Source
from mole.storage.stores import Store
from mole.storage.typed_json import FormatError

SCALE_SAMPLE = 4096
MORE_BITS: dict[str, tuple[str, ...]] = {"int8": ("float16", "float32"), "float16": ("float32",)}
Engine = Callable[[ShardMaker, Sequence[ShardJob], Encoding, Store], Generator[int, None, None]]
"""Writes shards, and gives the rows of each as soon as it is written."""


class DeliveryMaker:
    """Makes one delivery from a plan."""

    def __init__(
        self, plan: Plan, source: Source, key: MorphKey, store: Store, product: Product = multiply
    ) -> None:
        self._plan, self._source, self._key, self._store = plan, source, key, store
        self._product = product

    def make(self, engine: Engine, progress: Progress) -> Manifest:
        """Make every file that is missing."""
        plan, store = self._plan, self._store
        with (
            ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="decode") as decoders,
            self._protector() as protector,
        ):
            maker = ShardMaker(
                plan, self._source, self._key,
                decoders=decoders, product=self._product, protector=protector,
            )  # fmt: skip
            maker.read(replace(plan.jobs[0], stop=1))  # a wrong shape shows before the hard work
            present = store.names()
            missing = [job for job in plan.jobs if job.name not in present or self._is_dated(job)]
            is_fitted = plan.dtype != "int8" or SCALES in present
            encoding = load_encoding(store, plan.dtype, plan.input_shape) if is_fitted else self._fit(maker)
            probes, error = self._checked_layer(encoding, is_written=AUGMENTED in present)
            self._follow(engine(maker, missing, encoding, store), missing, progress)
        if protector is not None and protector.not_numbers:
            warn_of_front(protector.not_numbers)
        shards = {job: ShardFile(store, job.name).facts() for job in plan.jobs}
        clipped = sum((self._clipped(job, facts) for job, facts in shards.items()), Clipping())
        manifest = replace(
            self._manifest(self._splits(shards), error), clipped=clipped if clipped.values else None
        )
        if probes is not None and error is not None:
            witnesses = WitnessMaker(maker, encoding, probes, store).make(shards, error)
            save_probes(probes, witnesses, store)
        store.write(CARD, dataset_card(manifest, self._labels(), plan.kept).encode())
        manifest = manifest.write(store, store.names() - {UNFINISHED, MANIFEST, SIGNATURE})
        store.remove(UNFINISHED)
        return manifest

    def _checked_layer(
        self, encoding: Encoding, *, is_written: bool
    ) -> tuple[Probes, float] | tuple[None, None]:
        """Write the augmented layer, unless it is there; its probes, and its features' error on them."""
        plan, key, layer = self._plan, self._key, self._plan.layer
        if plan.layer_dtype is None:
            return None, None
        plain = smooth_images(key, layer.input_shape)
        order = key.channel_order(layer.channels)
        augmented = augment(layer, key, dtype=plan.layer_dtype, form=plan.layer_form)
        morphed = unroll(key.morphing.morph(plain))
        if encoding.scales is not None:
            plain, morphed = unclipped(plain, morphed, encoding.scales)
        seen = key.morphing.arranged(plain)
        features = features_of(layer, seen, channel_order=order).astype(np.float32)
        probes = Probes(encoding.encode(morphed), features)
        error = probe_error(probes, augmented, encoding)
        if not error <= MAX_PROBE_ERROR:
            raise DeliveryError(
                f"with core '{key.core}' and {encoding.dtype} data the features would be off by "
                f"{100 * error:.0f} %: make a key with an orthogonal core, or store more bits",
                advice={"dtype": MORE_BITS[plan.dtype]} if plan.dtype in MORE_BITS else {},
            )
        if not is_written:
            save_into(self._store, AUGMENTED, augmented)
        return probes, float(f"{error:.3g}")

    def _fit(self, maker: ShardMaker) -> Encoding:
        """The scales of 8-bit data, from the first shards: in their secret order a random sample.

        Those of a protected delivery follow from its certificates alone.
        """
        if (terms := self._plan.protection) is not None:
            encoding = Encoding.reaching(terms.reach, element_count(self._plan.input_shape))
            save_encoding(self._store, encoding)
            return encoding
        sample: list[Array] = []
        with single_products(1):  # several threads add up in another order: one gives the same everywhere
            for job in self._plan.jobs:
                if sum(map(len, sample)) < SCALE_SAMPLE:
                    sample.append(maker.morphed(maker.read(job).plain))
        if not sum(map(len, sample)):
            raise self._nothing_usable()
        encoding = Encoding.fit(self._plan.dtype, np.concatenate(sample))
        save_encoding(self._store, encoding)
        return encoding

    def _protector(self) -> AbstractContextManager[Protector | None]:
        """What turns images into protected rows, if they are to be."""
        if self._plan.front is None or self._plan.protection is None:
            return nullcontext()
        return Protector(self._plan.front, self._plan.protection)

    def _follow(
        self, writing: Generator[int, None, None], missing: Sequence[ShardJob], progress: Progress
    ) -> None:
        """Let the missing shards be written, and tell how far it is."""
        total = sum(job.rows for job in self._plan.jobs)
        done = total - sum(job.rows for job in missing)
        progress(done, total)
        with closing(writing) as written:
            for rows in written:
                done += rows
                progress(done, total)

    def _is_dated(self, job: ShardJob) -> bool:
        """Whether a shard of 8 bits that is there was written before version 0.6, under another name."""
        is_int8 = self._plan.dtype == "int8"
        return is_int8 and column_of("int8") not in ShardFile(self._store, job.name).columns()

    def _labels(self) -> range | None:
        """From the smallest to the largest label that leaves; None where there are none."""
        columns = [split.labels for split in self._source.splits.values() if split.labels is not None]
        if not columns:
            return None
        least = min(int(labels.min(initial=0)) for labels in columns)
        return range(least, 1 + max(int(labels.max(initial=-1)) for labels in columns))

    def _clipped(self, job: ShardJob, facts: ShardFacts) -> Clipping:
        """What 8 bits cut off in a shard, which may be an earlier run's."""
        try:
            return Clipping.of_shard(facts.metadata)
        except FormatError as error:
            raise DeliveryError(
                f"{self._store.label}/{job.name} is damaged ({error}): remove it, and call again"
            ) from None

    def _splits(self, shards: Mapping[ShardJob, ShardFacts]) -> dict[str, SplitFacts]:
        """Rows that are really there: some samples may have been skipped, in this run or an earlier one."""
        splits = {}
        for name, size in self._plan.sizes.items():
            parts = [facts for job, facts in shards.items() if job.split == name]
            splits[name] = SplitFacts(
                samples=size,
                rows=sum(part.rows for part in parts),
                shards=len(parts),
                source_dtype=common_dtype([part.source_dtype for part in parts]),
                views=self._plan.views_of(name),
            )
        if not any(facts.rows for facts in splits.values()):
            for job in shards:
                self._store.remove(job.name)
            raise self._nothing_usable()
        return splits

    def _manifest(self, splits: dict[str, SplitFacts], error: float | None) -> Manifest:
        """What the delivery holds, but for its files; `error` is that of the probes."""
        plan, key = self._plan, self._key
        return Manifest(
            delivery_id=plan.delivery_id,
            key_fingerprint=key.fingerprint,
            layer_fingerprint=plan.layer.fingerprint,
            input_shape=plan.input_shape,
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
            column=column_of(plan.dtype),
            protection=plan.protection,
            plain_shape=None if plan.input_shape == plan.layer.input_shape else plan.layer.input_shape,
        )

    def _nothing_usable(self) -> SourceError:
        first = why_left_out(self._plan, next(iter(self._source.splits.values())), 0)
        return SourceError(
            f"not one of {self._source.count} samples can be used, so nothing is left: {first.message}",
            advice=first.advice,
        )
