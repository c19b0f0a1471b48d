"""A folder of image files; class folders give labels, and split folders splits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mole.data.images import OTHER_SUFFIXES, SUFFIXES, ImageError, decode_image
from mole.data.places import FileMark, Place, fingerprint
from mole.data.source import BadSampleError, Labels, Sample, Source
from mole.data.sources.class_folders import arrange
from mole.errors import SourceError


@dataclass(frozen=True)
class FileSplit:
    """A split whose samples are files."""

    folder: Place
    paths: tuple[str, ...]
    labels: Labels | None
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> Sample:
        """One decoded image."""
        place = self.folder.child(self.paths[index])
        try:
            return decode_image(place.read())
        except ImageError as error:
            raise BadSampleError(place.shown, str(error)) from None
        except SourceError as error:
            raise BadSampleError(place.shown, str(error).removeprefix(f"{place.shown} ")) from None

    def name_of(self, index: int) -> str:
        """The file's name."""
        return self.folder.child(self.paths[index]).shown


def open_folder(folder: Place, files: Mapping[str, FileMark]) -> Source:
    """A folder of images."""
    images = {path: mark for path, mark in files.items() if path.lower().endswith(SUFFIXES)}
    unread = [path for path in files if path.lower().endswith(OTHER_SUFFIXES)]
    if not images:
        raise SourceError(f"{folder.shown} has no images ({', '.join(SUFFIXES)}): is it the right folder?")
    arranged, classes = arrange(folder, images)
    splits = {
        name: FileSplit(folder, files.paths, files.labels, {"file_name": file_names(files.paths)})
        for name, files in arranged.items()
    }
    return Source(
        "image folder", splits, classes, fingerprint(folder, images),
        decodes=True, unread=tuple(folder.child(path).shown for path in unread),
    )  # fmt: skip


def file_names(paths: Sequence[str]) -> list[str]:
    """Names of files without their folders."""
    return [path.rsplit("/", 1)[-1] for path in paths]
