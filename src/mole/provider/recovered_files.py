"""What was recovered, written as its name says: arrays, a table, or a folder of images.

    recovered.npz         arrays x_<split>, y_<split>, row_id_<split>; name_<split> where names are known
    recovered.parquet     a row for each image, with its split, name, label and row id
    recovered/            PNG files in class folders, named as they were

It shows people's images: only its owner can read it, and it appears complete or not at all.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from mole.errors import DeliveryError
from mole.provider.image_names import ImageNames, Originals
from mole.provider.recovered_forms import check_folder_free
from mole.storage.atomic import new_file, new_folder, reason_of

ROWS_TOGETHER = 1024  # of a Parquet file
Arrays = Mapping[str, npt.NDArray[Any]]


def save_arrays(arrays: Arrays, path: Path) -> None:
    """Write recovered arrays as an .npz file that only its owner can read."""
    _write_private(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def save_table(table: pa.Table, path: Path) -> None:
    """Write a table as a Parquet file that only its owner can read."""
    _write_private(path, lambda file: pq.write_table(table, file, row_group_size=ROWS_TOGETHER))


def image_table(arrays: Arrays, splits: Sequence[str], classes: Sequence[str] | None) -> pa.Table:
    """A row for each recovered image, as a tensor with its shape beside it."""
    parts = [_part(arrays, split, classes) for split in splits if len(arrays[f"x_{split}"])]
    if not parts:
        raise DeliveryError("the delivery has no rows: there is nothing to recover")
    table = pa.concat_tables(parts)
    return table.drop_columns([name for name in ("name", "label", "class_name") if _is_void(table[name])])


def save_images(arrays: Arrays, names: ImageNames, path: Path, *, force: bool = False) -> int:
    """Write recovered images as a folder of PNG files; how many.

    Those that it replaces stay until all of the new ones are there.

    Raises:
        DeliveryError: if it cannot be written.
        FileError: if something would be lost.
    """

    def is_free() -> bool:
        check_folder_free(path, force=force)
        return True

    is_free()
    written = 0
    try:
        with new_folder(path, may_replace=is_free) as temporary:  # asked again: the work takes a while
            for split in names.splits:
                for image, place in zip(arrays[f"x_{split}"], names.of(split), strict=True):
                    file = temporary / place
                    file.parent.mkdir(parents=True, exist_ok=True)
                    _picture(image).save(file)
                    written += 1
    except OSError as error:
        raise DeliveryError(f"{path} cannot be written: {reason_of(error)}") from None
    return written


def named(arrays: Arrays, originals: Originals | None) -> dict[str, npt.NDArray[Any]]:
    """Recovered arrays, with what the source calls each sample as name_<split>, if it is at hand."""
    found = (
        {} if originals is None else {f"name_{split}": names for split, names in originals.names.items()}
    )
    return {**arrays, **{name: np.array(texts, dtype=str) for name, texts in found.items()}}


def _part(arrays: Arrays, split: str, classes: Sequence[str] | None) -> pa.Table:
    images = np.ascontiguousarray(arrays[f"x_{split}"])
    count, labels, names = len(images), arrays.get(f"y_{split}"), arrays.get(f"name_{split}")
    words = [None] * count
    if labels is not None and classes is not None:
        words = [classes[label] if 0 <= label < len(classes) else None for label in labels.tolist()]
    return pa.table(
        {
            "split": pa.array([split] * count, pa.string()),
            "name": pa.array([None] * count if names is None else names.tolist(), pa.string()),
            "label": pa.array([None] * count if labels is None else labels.tolist(), pa.int64()),
            "class_name": pa.array(words, pa.string()),
            "row_id": pa.array(arrays[f"row_id_{split}"].tolist(), pa.string()),
            "shape": pa.array([list(images.shape[1:])] * count, pa.list_(pa.int32())),
            "image": pa.FixedShapeTensorArray.from_numpy_ndarray(images),
        }
    )


def _picture(values: npt.NDArray[Any]) -> Image.Image:
    """An image from its channels, (c, h, w)."""
    return Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))


def _is_void(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count == len(column))


def _write_private(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file that only its owner can read, and clear what killed runs left of one: plain data."""
    try:
        with new_file(path) as temporary, temporary.open("wb") as file:
            write(file)
    except OSError as error:
        raise DeliveryError(f"{path} cannot be written: {reason_of(error)}") from None
