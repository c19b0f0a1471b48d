"""Tables of labels, and the images that they are about."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mole.errors import ProblemsError
from mole.sources.opening import open_source
from source_files import save_image

LABELS = {"a.png": "cat", "b.png": "dog", "sub/c.jpg": "cat"}
ROWS = [{"file_name": name, "label": label, "age": age} for (name, label), age in
        zip(LABELS.items(), (61, 7, 30), strict=True)]  # fmt: skip


def make_photos(folder: Path) -> Path:
    """A folder of the images that the tables are about."""
    for name in LABELS:
        save_image(folder / name, np.zeros((4, 4), np.uint8))
    return folder


def csv_of(rows, delimiter=",") -> str:
    lines = [list(rows[0]), *(row.values() for row in rows)]
    return "\n".join(delimiter.join(map(str, line)) for line in lines) + "\n"


def write_table(path, rows=ROWS):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    else:
        path.write_text(csv_of(rows, "\t" if path.suffix == ".tsv" else ","))
    return path


def told(source, split="train"):
    """The class of each file, by its path in the folder."""
    part = source.splits[split]
    names = source.classes or range(10_000)
    return {
        part.folder.inside(path): names[label] for path, label in zip(part.paths, part.labels, strict=True)
    }


def mistakes(photos: Path, table: Path, **options: Any) -> list[str]:
    """The problems that the one message about a table lists."""
    with pytest.raises(ProblemsError) as caught:
        open_source(photos, labels=table, **options)
    assert caught.value.message == f"{table} does not fit the images of {photos}"
    problems = [str(problem) for problem in caught.value.problems]
    assert str(caught.value).splitlines()[1:] == [f"- {problem}" for problem in problems]
    return problems
