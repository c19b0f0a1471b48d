"""Open whatever the provider has; its kind is found by looking at it.

source = open_source("photos")
"""

from collections.abc import Iterable
from dataclasses import replace
from os import PathLike, fspath

from mole.errors import ParameterError, SourceError
from mole.sources import arrow_files, cifar, dicom, idx, image_folder, numpy_files
from mole.sources.images import OTHER_SUFFIXES
from mole.sources.images import SUFFIXES as IMAGE_SUFFIXES
from mole.sources.label_matching import FOUND
from mole.sources.reading import Bits, Reading, Window
from mole.sources.source import Source, check_source, without_labels
from mole.storage.locations import FileMark, Location

Address = str | PathLike[str]
TABLES = ("parquet", "saved data set")
KINDS = (
    "a folder of class folders of images, .npz, .npy, Parquet, a saved Hugging Face data set, "
    "CIFAR batches, MNIST idx files, or DICOM files"
)


def open_source(
    data: Address | Source,
    *,
    labels: bool | Address | None = None,
    label_column: str | None = None,
    label_tag: str | None = None,
    window: Window | None = None,
    bits: Bits = 8,
) -> Source:
    """Open a data set by its path or URL; one that is open already stays as it is.

    Args:
        data: its path or URL.
        labels: a table of the labels of a folder of files (CSV, TSV, JSON lines or Parquet); None for class
            folders, or for a table called metadata.csv, .jsonl or .parquet among the files; False for no
            labels at all.
        label_column: which column has the labels; None for 'label'.
        label_tag: the element of DICOM headers that is the label, such as 'BodyPartExamined'.
        window: of DICOM files, in the units of the modality: a centre and a width, or 'none' for all that
            a file can store; None for the first window in the header of each.
        bits: of DICOM files: 8, or 16 to tell grey values apart more finely.

    Raises:
        SourceError: if it is not there, has no samples, is not of a known kind, or does not fit its table.
        ParameterError: for what cannot be said of such data.
    """
    reading = Reading.of(labels, label_column=label_column, label_tag=label_tag, window=window, bits=bits)
    return read_source(data, reading)


def open_similar(
    data: Address, *, labels: bool | None = None, window: Window | None = None, bits: Bits = 8
) -> Source:
    """Open somebody else's images, of the same kind as the provider's own or not.

    What is said of the provider's DICOM files holds for these where they are DICOM files, too, and means
    nothing where they are not.
    """
    return read_source(data, Reading.of(labels, window=window, bits=bits), may_be_other=True)


def read_source(data: Address | Source, reading: Reading, *, may_be_other: bool = False) -> Source:
    """Open a data set as the provider says; without labels where none are wanted.

    Args:
        data: its path or URL.
        reading: what the provider says.
        may_be_other: whether that may be of no meaning for data of this kind.
    """
    if isinstance(data, Source):
        if not replace(reading, labels=True).is_default:
            raise ParameterError("the source is open already: say how to read it where it is opened")
        return data if reading.labels else without_labels(data)
    path = fspath(data)
    place = Location.of(path)
    found = place.look()
    if found is None:
        raise SourceError(f"{path} does not exist: give {KINDS}")
    opened = _open_folder(place, reading) if found == "folder" else _open_file(place, reading)
    if not may_be_other:
        _check_reading(opened, reading, path)
    return check_source(opened if reading.labels else without_labels(opened), path)


def _check_reading(source: Source, reading: Reading, path: str) -> None:
    """Refuse what means nothing for data of this kind: it would be ignored silently."""
    if source.kind != "DICOM" and (said := reading.of_dicom_only):
        names = " and ".join(name.replace("_", " ") for name in said)
        raise ParameterError(f"{path} holds no DICOM files, and only those have a {names}: leave it out")
    if source.kind not in ("DICOM", "image folder") and reading.table is not None:
        raise ParameterError(
            f"{path} is not a folder of image or DICOM files, and a table of labels is for those: make one"
        )
    if source.kind not in ("DICOM", "image folder", *TABLES) and reading.label_column is not None:
        raise ParameterError(f"{path} has no columns to choose labels from: leave the column out")


def _open_file(place: Location, reading: Reading) -> Source:
    name = place.path.lower()
    if name.endswith(".npz"):
        return numpy_files.open_npz(place, labels=reading.labels)
    if name.endswith(".npy"):
        return numpy_files.open_npy(place)
    if name.endswith(".parquet"):
        return arrow_files.open_parquet(place, {place.path: place.mark()}, reading)
    if dicom.is_dicom(place):
        return dicom.open_dicom(place, {place.path: place.mark()}, reading)
    if name.endswith(IMAGE_SUFFIXES):
        raise SourceError(
            f"{place.label} is a single image, and a data set is needed here: give its folder"
        )
    raise SourceError(f"{place.label} is not of a kind that can be read: give {KINDS}")


def _open_folder(place: Location, reading: Reading) -> Source:
    files = place.files()
    if not files:
        raise SourceError(f"{place.label} is empty: give {KINDS}")
    if {"dataset_dict.json", "state.json"} & {place.inside(path) for path in files}:
        return arrow_files.open_saved_dataset(place, files, reading)
    if any(idx.IDX_NAME.search(path) for path in files):
        return idx.open_idx(place, files)
    if cifar.holds_cifar({path.rsplit("/", 1)[-1] for path in files}):
        return cifar.open_cifar(place, files)
    tables = {path: mark for path, mark in files.items() if path.lower().endswith(".parquet")}
    if tables and (len(tables) == len(files) or not _are_of_labels(tables, reading)):
        return arrow_files.open_parquet(place, tables, reading)
    return _open_images(place, files, reading)


def _are_of_labels(tables: Iterable[str], reading: Reading) -> bool:
    """Whether all of these tables say something of the images beside them, and hold none."""
    given = None if reading.table is None else Location.of(reading.table).path
    return all(path == given or path.rsplit("/", 1)[-1].lower() in FOUND for path in tables)


def _open_images(place: Location, files: dict[str, FileMark], reading: Reading) -> Source:
    """Image files or DICOM files: never both, because one of them would be left out silently."""
    scans = dicom.dicom_files(place, files)
    if not scans:
        return image_folder.open_folder(place, files, reading)
    if any(path.lower().endswith(IMAGE_SUFFIXES + OTHER_SUFFIXES) for path in files):
        raise SourceError(
            f"{place.label} holds DICOM files and other images: give a folder with one kind of them"
        )
    return dicom.open_dicom(place, scans, reading, files)
