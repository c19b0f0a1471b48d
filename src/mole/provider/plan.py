"""What a delivery is made from, without the key: plain values, which may travel to other machines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

from mole.errors import ParameterError
from mole.exchange.shards import RESERVED, Dtype, shard_name
from mole.foreign_text import shown
from mole.protection.front_file import Front
from mole.protection.terms import Protection
from mole.provider.image_views import learning_split
from mole.provider.keys import MorphKey
from mole.scheme.augmented import LayerDtype
from mole.scheme.factored import LayerForm
from mole.scheme.filling import can_fill
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Shape, element_count
from mole.sources.opening import read_source
from mole.sources.preparation import Mode, Preparation, Resize
from mole.sources.reading import Reading
from mole.sources.source import Source
from mole.storage.age_keys import listed_ones

SHARD_BYTES = 1 << 26  # of 32-bit values: large products, and little memory


@dataclass(frozen=True)
class ShardJob:
    """Which rows of which split make up a shard."""

    split: str
    index: int
    count: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """Number of rows, before bad samples are left out."""
        return self.stop - self.start

    @property
    def name(self) -> str:
        """The shard's name in its delivery."""
        return shard_name(self.split, self.index, self.count)

    def pieces(self, rows: int) -> Iterator["ShardJob"]:
        """The same rows in pieces of at most `rows`."""
        for start in range(self.start, self.stop, rows):
            yield replace(self, start=start, stop=min(start + rows, self.stop))


@dataclass(frozen=True)
class Plan:
    """Everything that decides what a delivery looks like, but for the key and the samples themselves.

    Attributes:
        source: the provider's data, opened; what the plan needs to know of it is read at once.
        key: the provider's key, which names the delivery; neither of the two is kept.
        layer: the developer's first layer.
        source_address: path or URL of the data, as every worker sees it; None where only this process
            reads it.
        dtype: how morphed values are stored.
        layer_dtype: how the augmented layer is stored; None to leave it out, for further data under a key
            whose augmented layer the developer has.
        layer_form: 'dense' or 'factored'; None for the smaller one.
        mode, resize: how images are brought to the layer's shape; None refuses those that do not fit.
        keep: further columns to hand over.
        skip_bad: leave out samples that cannot be read, instead of stopping.
        class_names: hand over the names of the classes.
        labels: hand over labels; without them no names of classes leave either.
        reading: what the provider said of how the data is read.
        rows_per_shard: rows in a shard, at most; None for about 64 MB of 32-bit values.
        recipients: for whom the delivery is sealed; none for one that is not.
        views: how many views of each image leave, of the split that is learned from.
        front, protection: what a protected delivery is made with, and the certificate of each split.
        draft_name: what names a protected delivery in the place of its data, of which nothing may leave.
        input_shape: shape of a morphed sample: the layer's, unless zeros fill its tiles.
        sizes: how many samples each split has.
        classes: names of the classes that leave, if any.
        kept: the type of each further column.
        parts: what it is made from, each part by itself, to tell which of them another delivery has not.
        delivery_id: a name for all this that only the holder of the key can compute.
    """

    source: InitVar[Source]
    key: InitVar[MorphKey]
    layer: FirstLayer
    source_address: str | None
    dtype: Dtype = "float32"
    layer_dtype: LayerDtype | None = "float32"
    layer_form: LayerForm | None = None
    mode: Mode | None = None
    resize: Resize | None = None
    keep: tuple[str, ...] = ()
    skip_bad: bool = False
    class_names: bool = True
    labels: bool = True
    reading: Reading = field(default_factory=Reading)
    rows_per_shard: int | None = None
    recipients: tuple[str, ...] = ()
    views: int = 1
    front: Front | None = None
    protection: Protection | None = None
    draft_name: str | None = None
    input_shape: Shape = field(init=False)
    sizes: Mapping[str, int] = field(init=False)
    classes: tuple[str, ...] | None = field(init=False)
    kept: Mapping[str, pa.DataType] = field(init=False)
    parts: Mapping[str, Any] = field(init=False)
    delivery_id: str = field(init=False)

    def __post_init__(self, source: Source, key: MorphKey) -> None:
        refuse_other_shape(key, self.layer)
        facts = {
            "input_shape": key.input_shape,
            "sizes": {name: len(split) for name, split in source.splits.items()},
            "classes": source.classes if self.class_names and self.labels else None,
            "kept": kept_types(source, self.keep),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        options = self._options()
        object.__setattr__(self, "parts", self._parts(source, key, options))
        object.__setattr__(self, "delivery_id", self._named_by(source, key, options))

    @cached_property
    def preparation(self) -> Preparation:
        """How samples become plain data: as the front takes them, if there is one, or the first layer."""
        return prepared(self.layer, self.front, self.mode, self.resize)

    @cached_property
    def jobs(self) -> list[ShardJob]:
        """The shards of each split, of about the same size, so that cores which share them end together."""
        elements = max(element_count(self.input_shape), element_count(self.preparation.input_shape) // 4)
        at_most = self.rows_per_shard or max(1, SHARD_BYTES // (4 * elements))
        jobs = []
        for name in self.sizes:
            size = self.most_rows(name)
            count = -(-size // at_most)
            edges = [size * index // count for index in range(count + 1)]
            jobs += [
                ShardJob(name, index, count, start, stop)
                for index, (start, stop) in enumerate(pairwise(edges))
            ]
        return jobs

    def views_of(self, split: str) -> int:
        """How many views of each of its samples leave."""
        return self.views if split == learning_split(self.sizes) else 1

    def most_rows(self, split: str) -> int:
        """How many rows a split has, before bad samples are left out."""
        return self.sizes[split] * self.views_of(split)

    def open_source(self) -> Source:
        """The data, opened by its address: what every process does for itself."""
        if self.source_address is None:
            raise ParameterError(
                "this plan does not say where its data lies: only a path or URL can travel"
            )
        return read_source(self.source_address, replace(self.reading, labels=self.labels))

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "dtype": self.dtype,
            "layer_dtype": self.layer_dtype,
            "mode": self.mode,
            "resize": self.resize,
            "keep": self.keep,
            "skip_bad": False,  # it changes no row: work goes on with it, or without
            "class_names": self.class_names and self.labels,
            "rows_per_shard": self.rows_per_shard,
        }
        # Usually there are labels where there is a layer to train on: only what is unusual needs a word.
        if self.labels != (self.layer_dtype is not None):
            options["labels"] = self.labels
        if self.layer_form is not None:
            options["layer_form"] = self.layer_form
        if self.recipients:
            options["recipients"] = self.recipients
        if self.views != 1:
            options["views"] = self.views
        if self.protection is not None:
            options["protection"] = self.protection.fields()
        return options

    def _parts(self, source: Source, key: MorphKey, options: Mapping[str, Any]) -> dict[str, Any]:
        """Each part by itself; of the data only a digest, because it may lie in clear for a while.

        Of the data of a protected delivery nothing: a digest would tell the holder of the key which it is.
        """
        data = json.dumps([source.fingerprint, self.sizes], sort_keys=True)
        named = {"data": key.mac("delivery/data", data)} if self.draft_name is None else {}
        return {
            "key": key.fingerprint,
            "layer": self.layer.fingerprint,
            **named,
            "samples": dict(self.sizes),
            "views": self.views,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in options.items()},
        }

    def _named_by(self, source: Source, key: MorphKey, options: Mapping[str, Any]) -> str:
        what = source.fingerprint if self.draft_name is None else self.draft_name
        facts = [what, self.sizes, self.layer.fingerprint, key.fingerprint, options]
        return key.mac("delivery", json.dumps(facts, sort_keys=True))


def refuse_other_shape(key: MorphKey, layer: FirstLayer) -> None:
    """Refuse a key that was made for samples of another shape."""
    if not can_fill(layer.input_shape, key.parameters.to_layout()):
        raise ParameterError(
            f"{key.path or 'the key'} morphs samples of shape {key.input_shape} and the layer takes "
            f"{layer.input_shape}: give the key for this layer, or make one"
        )


def prepared(
    layer: FirstLayer, front: Front | None, mode: Mode | None, resize: Resize | None
) -> Preparation:
    """How samples become what the front takes, if there is one, or the first layer."""
    if front is not None:
        return Preparation(front.input_shape, front.normalisation, mode, resize, "front")
    return Preparation.for_layer(layer, mode=mode, resize=resize)


def kept_types(source: Source, keep: Sequence[str]) -> dict[str, pa.DataType]:
    """The type of each column that leaves, one for all splits.

    Raises:
        ParameterError: for a column that is not there, that differs between splits, or whose name is taken.
    """
    types: dict[str, pa.DataType] = {}
    for column in listed_ones(keep, "columns to keep"):
        if column in RESERVED:
            raise ParameterError(
                f"column '{column}' cannot be kept: a delivery has one of that name itself: rename it"
            )
        columns = [_column(source, column, name) for name in source.splits]
        try:
            found = [_type_of(cells) for cells in columns]
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            raise ParameterError(
                f"column '{shown(column)}' holds values of several types, or some that cannot be stored: "
                "make them one type, or leave it out"
            ) from None
        try:
            schemas = [pa.schema([(column, kind)]) for kind in found]
            types[column] = pa.unify_schemas(schemas).field(column).type
        except pa.ArrowException:
            raise ParameterError(
                f"column '{column}' holds {' and '.join(map(str, found))} in different splits: "
                "make them one type, or leave it out"
            ) from None
    return types


def kept_values(values: Sequence[Any], indices: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Some cells of a column, in the type that the whole delivery has."""
    cells = (values[index] for index in indices)
    return pa.array([cell.as_py() if isinstance(cell, pa.Scalar) else cell for cell in cells], kind)


def _column(source: Source, column: str, split: str) -> Sequence[Any]:
    extra = source.splits[split].extra
    if column not in extra:
        known = "; ".join([", ".join(extra) or "none", *source.remarks])
        raise ParameterError(f"split '{split}' has no column '{column}' to keep: it has {known}")
    return extra[column]


def _type_of(values: Sequence[Any]) -> pa.DataType:
    kind = values.type if isinstance(values, pa.ChunkedArray) else pa.array(values).type
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
