"""Tables with a column of images, as splits: what Parquet files and saved data sets hold."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mole.errors import SourceError
from mole.foreign_text import listed, shown
from mole.sources.image_headers import image_outline
from mole.sources.images import ImageError, decode_image
from mole.sources.numbering import MOST_NUMBERED, numbered
from mole.sources.source import BadSampleError, Labels, Outline, Sample, Source, guess_axes
from mole.storage.arrow_reading import UNREADABLE
from mole.storage.typed_json import FormatError, parse_json

LABELS = ("label", "labels", "fine_label", "class", "target")
IMAGES = ("image", "img", "images", "pixels", "x")


class Table(Protocol):
    """What is used of a table: pyarrow's own, or one that is on disk."""

    schema: pa.Schema
    num_rows: int

    @property
    def column_names(self) -> list[str]:
        """Names of all columns."""

    def __getitem__(self, name: str) -> pa.ChunkedArray: ...


class FurtherColumns(Mapping[str, Sequence[Any]]):
    """Some columns of a table, none of which is read before it is asked for."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self._table, self._names = table, names

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        if name not in self._names:
            raise KeyError(name)
        return self._table[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class TableSplit:
    """A split whose samples are the rows of a table."""

    table: Table
    image: str
    label: str | None
    labels: Labels | None
    where: str
    texts: tuple[str, ...] | None = None  # labels in words, before they are numbered

    @property
    def extra(self) -> Mapping[str, Sequence[Any]]:
        """Every column but the image and the label."""
        names = self.table.column_names
        return FurtherColumns(self.table, [name for name in names if name not in (self.image, self.label)])

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def read(self, index: int) -> Sample:
        """One decoded image, or one tensor."""
        with self._told_of(index):
            return _sample(self.table[self.image][index])

    def outline(self, index: int) -> Outline | None:
        """What the header of an image tells, or the lengths of a tensor's lists."""
        kind = self.table.schema.field(self.image).type
        if isinstance(kind, pa.FixedShapeTensorType):
            shape = tuple(kind.shape)
            return Outline(shape, guess_axes(shape), np.dtype(kind.value_type.to_pandas_dtype()).name)
        with self._told_of(index):
            return _outline(_content(self.table[self.image][index]))

    @contextmanager
    def _told_of(self, index: int) -> Iterator[None]:
        """Say of a row what is wrong with it."""
        try:
            yield
        except ImageError as error:
            raise BadSampleError(self.name_of(index), str(error)) from None
        except UNREADABLE as error:
            raise BadSampleError(self.name_of(index), f"it is damaged ({shown(error)})") from None

    def name_of(self, index: int) -> str:
        """Which row of which file."""
        return f"row {index} of {self.where}"


def table_source(
    kind: str,
    tables: Mapping[str, Table],
    where: str,
    fingerprint: str,
    label_column: str | None = None,
    *,
    labels: bool = True,
) -> Source:
    """A source from the table of each split; another column of labels makes it another source."""
    splits = {
        name: table_split(table, f"{where} ({name})", label_column, labels=labels)
        for name, table in tables.items()
    }
    classes = None
    for name, table in tables.items():
        classes = classes or class_names(table.schema, splits[name].label)
    if label_column is not None:
        fingerprint = hashlib.sha256(f"{fingerprint} {label_column}".encode()).hexdigest()
    if any(_may_tell_people(split.labels, classes) for split in splits.values()):
        splits = {name: _as_texts(split) for name, split in splits.items()}
        fingerprint = hashlib.sha256(f"{fingerprint} as names".encode()).hexdigest()
    texts = {name: split.texts for name, split in splits.items() if split.texts is not None}
    if texts:
        if len(texts) < sum(split.label is not None for split in splits.values()):
            raise SourceError(
                f"{where} has labels in words in one split and in numbers in another: use one of them"
            )
        numbers, named = numbered([text for part in texts.values() for text in part])
        parts = np.split(numbers, np.cumsum([len(part) for part in texts.values()])[:-1])
        for name, part in zip(texts, parts, strict=True):
            splits[name] = replace(splits[name], labels=part, texts=None)
        classes = named or classes
    return Source(kind, splits, classes, fingerprint, decodes=True)


def table_split(
    table: Table, where: str, label_column: str | None = None, *, labels: bool = True
) -> TableSplit:
    """A split from a table, with its image and label columns found by type and name."""
    image = _image_column(table.schema, where)
    if label_column is None:
        label = next((name for name in LABELS if name in table.column_names and name != image), None)
    elif label_column in table.column_names and label_column != image:
        label = label_column
    else:
        others = listed(name for name in table.column_names if name != image)
        raise SourceError(f"{where} has no column '{shown(label_column)}': it has {others}")
    if label is None or not labels:
        return TableSplit(table, image, label, None, where)
    kind = table.schema.field(label).type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind)) or table[label].null_count:
        raise SourceError(
            f"{where}: column '{shown(label)}' must hold text or a whole number in every row: change it, "
            "or choose another",
            advice={"label_column": None},
        )
    if not is_text:
        return TableSplit(table, image, label, table[label].to_numpy().astype(np.int64), where)
    texts = table[label].to_pylist()
    if "" in texts:
        raise SourceError(f"{where}: row {texts.index('')} has an empty '{shown(label)}': fill it in")
    return TableSplit(table, image, label, None, where, tuple(texts))


def _may_tell_people(labels: Labels | None, classes: Sequence[str] | None) -> bool:
    """Whether one has five digits or more, as a patient's number or a day has, and numbers no class."""
    if labels is None:
        return False
    most = max(MOST_NUMBERED, len(classes or ()) - 1)
    return bool(((labels > most) | (labels < -MOST_NUMBERED)).any())


def _as_texts(split: TableSplit) -> TableSplit:
    """The same split with its numbers as words: then they are classes by name."""
    if split.label is None or split.labels is None:
        return split
    return replace(split, labels=None, texts=tuple(map(str, split.table[split.label].to_pylist())))


def class_names(schema: pa.Schema, label: str | None) -> tuple[str, ...] | None:
    """Names of the classes, where Hugging Face wrote them into the schema."""
    try:
        about = parse_json((schema.metadata or {}).get(b"huggingface", b""))
        return about.object("info").object("features").object(label or "").texts("names")
    except FormatError:
        return None


def _image_column(schema: pa.Schema, where: str) -> str:
    found = [field.name for field in schema if _holds_images(field.type)]
    named = [name for name in IMAGES if name in found]
    if not found:
        raise SourceError(f"{where} has no column of images: give image files as bytes, or tensors")
    if not named and len(found) > 1:
        raise SourceError(
            f"{where} has several columns that could be images ({listed(found)}): name one of them 'image'"
        )
    return str((named or found)[0])


def _holds_images(kind: pa.DataType) -> bool:
    kind = _stored(kind)
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _is_bytes(kind.field("bytes").type)
    return _is_bytes(kind) or _is_list(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    """Whether it is a tensor, or a list of lists of numbers: one list alone is not an image."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return True
    depth = 0
    while _is_any_list(kind):
        kind, depth = _stored(kind.value_type), depth + 1
    return depth >= 2 and bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_any_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def _stored(kind: pa.DataType) -> pa.DataType:
    """What an extension type is stored as; `datasets` has some of its own. Tensors stay as they are."""
    is_extension = isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.FixedShapeTensorType)
    return kind.storage_type if is_extension else kind


def _content(cell: pa.Scalar) -> pa.Scalar:
    """The cell that holds an image's bytes or numbers."""
    if cell.is_valid and isinstance(cell, pa.StructScalar):
        cell = cell["bytes"]
    if not cell.is_valid:
        raise ImageError("it holds no image, or only the path of one: store the image's bytes")
    return cell


def _outline(cell: pa.Scalar) -> Outline | None:
    """What a cell holds; of nested lists, as long as the first of each kind is."""
    if isinstance(cell, pa.BinaryScalar):
        return image_outline(pa.BufferReader(cell.as_buffer()))
    if isinstance(cell, pa.ExtensionScalar):
        return None
    shape: list[int] = []
    while isinstance(cell, pa.ListScalar) and cell.is_valid:
        shape.append(len(cell))
        if not shape[-1]:
            return None
        cell = cell[0]
    return Outline(tuple(shape), guess_axes(tuple(shape)), np.dtype(cell.type.to_pandas_dtype()).name)


def _sample(cell: pa.Scalar) -> Sample:
    cell = _content(cell)
    if isinstance(cell, pa.BinaryScalar):
        return decode_image(cell.as_py())
    values = _array(cell)
    return Sample(values, guess_axes(values.shape))


def _array(cell: pa.Scalar) -> Any:
    """The numbers of a tensor or of nested lists, in the type that they are stored in."""
    if isinstance(cell.type, pa.FixedShapeTensorType):
        flat, shape = cell.value.values, tuple(cell.type.shape)
        return flat.to_numpy(zero_copy_only=False).reshape(shape)
    cell = cell.value if isinstance(cell, pa.ExtensionScalar) else cell
    leaf = cell.type
    while _is_any_list(leaf):
        leaf = _stored(leaf.value_type)
    try:
        return np.array(cell.as_py(), dtype=leaf.to_pandas_dtype())
    except (ValueError, TypeError):
        raise ImageError("its rows differ in length, or have gaps: give a full grid of numbers") from None
