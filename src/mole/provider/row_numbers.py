"""Which samples of the source are not in a delivery, told by the row ids that are missing in it."""

from collections.abc import Iterator, Mapping

from mole.exchange.manifest import SplitFacts
from mole.exchange.shards import ShardFile, shard_name
from mole.provider.plan import Order
from mole.provider.shard_maker import read_sample
from mole.sources.source import BadSampleError


def skipped_samples(order: Order, splits: Mapping[str, SplitFacts]) -> tuple[BadSampleError, ...]:
    """The samples that were left out, in the order of the source, and why.

    It looks at what was delivered, so that work which was interrupted and went on later counts too.
    """
    skipped = []
    for name, facts in splits.items():
        if facts.rows == facts.samples:
            continue
        split = order.source.splits[name]
        for index in sorted(_missing(order, name, facts)):
            found = read_sample(split, index, order.preparation)
            unknown = BadSampleError(split.name_of(index), "it could not be read when it was needed")
            skipped.append(found if isinstance(found, BadSampleError) else unknown)
    return tuple(skipped)


def _missing(order: Order, split: str, facts: SplitFacts) -> Iterator[int]:
    which = (order.delivery_id, split, facts.samples)
    names = [shard_name(split, index, facts.shards) for index in range(facts.shards)]
    delivered = {row_id for name in names for row_id in ShardFile(order.store, name).row_ids()}
    ids, indices = order.key.row_ids(*which), order.key.row_order(*which).tolist()
    for row_id, index in zip(ids, indices, strict=True):
        if row_id not in delivered:
            yield index
