"""Data sets that Hugging Face's `datasets` saved with save_to_disk."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from mole.data.places import FileMark, Place, fingerprint
from mole.data.scratch import mapped
from mole.data.source import Source
from mole.data.sources.tables import table_source
from mole.errors import SourceError

DICT, STATE = "dataset_dict.json", "state.json"


def open_saved_dataset(folder: Place, files: Mapping[str, FileMark]) -> Source:
    """One data set, as a split 'train', or a DatasetDict."""
    folders = {"train": folder.path}
    if f"{folder.path}/{DICT}" in files:
        splits = _listed(folder.child(f"{folder.path}/{DICT}"), "splits")
        folders = {split: f"{folder.path}/{split}" for split in splits}
    paths = {
        split: _data_files(folder.child(f"{where}/{STATE}"), where) for split, where in folders.items()
    }
    tables = {split: _table(folder, split, parts) for split, parts in paths.items() if parts}
    used = {path: files.get(path, FileMark(0, "")) for parts in paths.values() for path in parts}
    return table_source("saved data set", tables, folder.shown, fingerprint(folder, used))


def _table(folder: Place, split: str, paths: Sequence[str]) -> pa.Table:
    try:
        return pa.concat_tables([_read(folder.child(path)) for path in paths])
    except pa.ArrowException:
        raise SourceError(
            f"{folder.shown} ({split}): its files differ in their columns: save the data set again"
        ) from None


def _data_files(state: Place, where: str) -> list[str]:
    """The files of a data set. Others lie there too: `datasets` caches its work next to the data."""
    return [f"{where}/{name}" for name in _listed(state, "_data_files")]


def _listed(place: Place, key: str) -> list[str]:
    """Names that a JSON file lists: plain strings, or objects with a file name."""
    content = place.read()
    try:
        entries = json.loads(content)[key]
        names = [entry["filename"] if isinstance(entry, dict) else entry for entry in entries]
        if not all(isinstance(name, str) and "/" not in name for name in names):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise SourceError(f"{place.shown} is damaged: save the data set again") from None
    return names


def _read(place: Place) -> pa.Table:
    """A table in Arrow's stream format: mapped, not loaded; one from elsewhere is copied to disk before."""
    try:
        if place.is_local:
            return pa.ipc.open_stream(pa.memory_map(place.path)).read_all()
        with place.open() as opened, pa.ipc.open_stream(opened) as stream:
            return mapped(stream, stream.schema, place.shown)
    except (pa.ArrowException, OSError):
        raise SourceError(
            f"{place.shown} is not a readable Arrow file, or it is cut off: get it again"
        ) from None
