"""The rows of one table of labels against the files that it is about, and what does not fit."""

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mole.errors import SourceError
from mole.foreign_text import listed, shown
from mole.sources.label_tables import LABEL, LabelTable
from mole.sources.reading import Reading
from mole.storage.locations import Location
from mole.storage.typed_json import is_text, is_whole

EXAMPLES = 3


class Row(NamedTuple):
    """What a table says of one file; `label` is None where it was not asked for one."""

    label: str | int | None
    cells: Mapping[str, Any]


class RowMatching:
    """One table against the files that it is about; `rows` has what it says, by full path."""

    def __init__(
        self,
        folder: Location,
        base: str,
        table: LabelTable,
        paths: Sequence[str],
        *,
        uid_of: Mapping[str, str],
        reading: Reading,
        unread: Sequence[str] = (),
    ) -> None:
        self._table, self._paths, self._folder = table, paths, folder
        self._prefixes = (f"{base}/", f"{folder.label.rstrip('/')}/")
        self._inside = {path: path.removeprefix(f"{base}/") for path in paths}
        self._index = _index(self._inside, uid_of)
        self._unread = _index({path: path.removeprefix(f"{base}/") for path in unread}, {})
        self._of_other_kinds: list[str] = []
        self._wrong: dict[str, list[object]] = defaultdict(list)
        self.rows: dict[str, Row] = {}
        wanted = reading.label_column or LABEL
        self._column = table.column(wanted) if reading.labels else None
        is_asked_for = reading.table is not None or reading.label_column is not None
        self._missing = wanted if self._column is None and is_asked_for and reading.labels else None
        self._match()

    @property
    def gives_labels(self) -> bool:
        """Whether labels are wanted of the table, and it has them, or was asked for them."""
        return self._column is not None or self._missing is not None

    def mistakes(self) -> list[SourceError]:
        """A line for each kind of mistake, with how many there are and a few of them.

        A row about an image of a kind that cannot be read is none by itself: what judges images says so.
        """
        found = []
        if self._missing is not None:
            columns = listed(self._table.columns)
            found.append(
                SourceError(
                    f"no column '{shown(self._missing)}' (it has {columns or 'nothing but names'})",
                    advice={"label_column": None} if columns else None,
                )
            )
        found += [
            SourceError(f"{what} ({len(names)}): {listed(names, EXAMPLES)}")
            for what, names in self._wrong.items()
        ]
        if found and (others := self._of_other_kinds):
            few = listed(others, EXAMPLES)
            found.append(
                SourceError(f"of a kind that cannot be read ({len(others)}): {few}: convert to PNG")
            )
        return found

    def _match(self) -> None:
        columns = self._table.columns
        others = [name for name in columns if name != self._column]
        if self._table.ragged:
            lines = [f"line {number}" for number in self._table.ragged]
            self._wrong["more or fewer cells than the first line has"] += lines
        for number, name in enumerate(self._table.names):
            found = _found(name, self._index, self._prefixes)
            if not found and _found(name, self._unread, self._prefixes):
                self._of_other_kinds.append(name)
                continue
            if len(found) != 1:
                what = "in the table, but not in the folder" if not found else "several files of that name"
                self._wrong[what].append(name or f"row {number + 1}, which names no file")
                continue
            label = self._label(columns[self._column][number], name) if self._column else None
            row = Row(label, {column: columns[column][number] for column in others})
            if (before := self.rows.get(found[0], row)) != row:
                what = "two labels for one image" if before.label != label else "two rows for one image"
                self._wrong[what].append(name)
            self.rows[found[0]] = row
        if unknown := [self._inside[path] for path in self._paths if path not in self.rows]:
            self._wrong["in the folder, but not in the table"] += unknown

    def _label(self, value: Any, name: str) -> str | int | None:
        if isinstance(value, bool):
            return str(value).lower()
        if value is None or (isinstance(value, str) and not value.strip()):
            self._wrong["no label"].append(name)
        elif is_text(value) or is_whole(value):
            return value.strip() if isinstance(value, str) else int(value)
        else:
            self._wrong["a label that is neither text nor a whole number"].append(name)
        return None


def _found(name: str, index: Mapping[str, Sequence[str]], prefixes: Sequence[str]) -> Sequence[str]:
    """The files that a name fits."""
    plain = unicodedata.normalize("NFC", name)
    for spelling in (plain, plain.replace("\\", "/").removeprefix("./")):
        for prefix in ("", *prefixes):
            if found := index.get(spelling.removeprefix(prefix)):
                return found
    return ()


def _index(inside: Mapping[str, str], uid_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Files by every name that could mean one of them; a whole path always means its file."""
    index: dict[str, list[str]] = {}
    for spell in (_path, _name, _stem):
        found: dict[str, list[str]] = defaultdict(list)
        for path, short in inside.items():
            found[unicodedata.normalize("NFC", spell(short))].append(path)
        index = {**found, **index}
    by_uid: dict[str, list[str]] = defaultdict(list)
    for path in inside:
        if uid := uid_of.get(path):
            by_uid[uid].append(path)
    return {**by_uid, **index}


def _path(path: str) -> str:
    return path


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _stem(path: str) -> str:
    name = _name(path)
    return name.rpartition(".")[0] or name
