"""The end of a delivery: count what is there, and write the card and the manifest."""

from collections.abc import Mapping, Sequence

from mole.exchange.card import CARD, dataset_card
from mole.exchange.delivery import UNFINISHED
from mole.exchange.manifest import FileFacts, Manifest, SplitFacts
from mole.exchange.shards import ShardFile, common_dtype
from mole.provider.plan import Order
from mole.provider.shard_maker import ShardJob
from mole.storage.stores import digest_of


def count_rows(order: Order, jobs: Sequence[ShardJob]) -> dict[str, SplitFacts]:
    """Rows that are really there: some samples may have been skipped, in this run or an earlier one."""
    splits = {}
    for name, split in order.source.splits.items():
        shards = [ShardFile(order.store, job.name).facts() for job in jobs if job.split == name]
        splits[name] = SplitFacts(
            samples=len(split),
            rows=sum(shard.rows for shard in shards),
            shards=len(shards),
            source_dtype=common_dtype([shard.source_dtype for shard in shards]),
        )
    return splits


def write_card(order: Order, splits: Mapping[str, SplitFacts]) -> None:
    """Write the data set card."""
    card = dataset_card(order.layer.input_shape, order.options.dtype, splits, order.classes)
    order.store.write(CARD, card.encode())


def write_manifest(order: Order, splits: dict[str, SplitFacts], error: float | None) -> Manifest:
    """Write the manifest, with a checksum of every other file; `error` is that of the probes."""
    layer, key, store, options = order.layer, order.key, order.store, order.options
    digests = {name: digest_of(store, name) for name in sorted(store.names() - {UNFINISHED})}
    manifest = Manifest(
        delivery_id=order.delivery_id,
        key_fingerprint=key.fingerprint,
        layer_fingerprint=layer.fingerprint,
        input_shape=layer.input_shape,
        output_shape=layer.output_shape,
        kappa=key.kappa,
        layout=key.parameters.layout,
        dtype=options.dtype,
        probe_error=error,
        normalisation=layer.normalisation,
        mode=options.mode,
        resize=options.resize,
        classes=order.classes,
        columns=options.keep,
        splits=splits,
        files={name: FileFacts(bytes=size, sha256=digest) for name, (digest, size) in digests.items()},
    )
    manifest.write(store)
    return manifest
