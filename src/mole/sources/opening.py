"""Open whatever the provider has; its kind is found by looking at it.

source = open_source("photos")
"""

from os import PathLike, fspath

from mole.errors import SourceError
from mole.sources import arrow_files, cifar, dicom, idx, image_folder, numpy_files
from mole.sources.images import OTHER_SUFFIXES
from mole.sources.images import SUFFIXES as IMAGE_SUFFIXES
from mole.sources.source import Source, check_source
from mole.storage.locations import FileMark, Location

KINDS = (
    "a folder of class folders of images, .npz, .npy, Parquet, a saved Hugging Face data set, "
    "CIFAR batches, MNIST idx files, or DICOM files"
)


def open_source(data: str | PathLike[str] | Source) -> Source:
    """Open a data set by its path or URL; one that is open already stays as it is.

    Raises:
        SourceError: if it is not there, has no samples, or is not of a known kind.
    """
    if isinstance(data, Source):
        return data
    path = fspath(data)
    place = Location.of(path)
    found = place.look()
    if found is None:
        raise SourceError(f"{path} is not there: give {KINDS}")
    source = _open_folder(place) if found == "folder" else _open_file(place)
    return check_source(source, path)


def _open_file(place: Location) -> Source:
    name = place.path.lower()
    if name.endswith(".npz"):
        return numpy_files.open_npz(place)
    if name.endswith(".npy"):
        return numpy_files.open_npy(place)
    if name.endswith(".parquet"):
        return arrow_files.open_parquet(place, {place.path: place.mark()})
    if dicom.is_dicom(place):
        return dicom.open_dicom(place, {place.path: place.mark()})
    if name.endswith(IMAGE_SUFFIXES):
        raise SourceError(
            f"{place.label} is a single image, and a data set is needed here: give its folder"
        )
    raise SourceError(f"{place.label} is not of a kind that can be read: give {KINDS}")


def _open_folder(place: Location) -> Source:
    files = place.files()
    if not files:
        raise SourceError(f"{place.label} is empty: give {KINDS}")
    if {"dataset_dict.json", "state.json"} & {place.inside(path) for path in files}:
        return arrow_files.open_saved_dataset(place, files)
    if any(idx.IDX_NAME.search(path) for path in files):
        return idx.open_idx(place, files)
    if cifar.holds_cifar({path.rsplit("/", 1)[-1] for path in files}):
        return cifar.open_cifar(place, files)
    tables = {path: mark for path, mark in files.items() if path.lower().endswith(".parquet")}
    if tables:
        return arrow_files.open_parquet(place, tables)
    return _open_images(place, files)


def _open_images(place: Location, files: dict[str, FileMark]) -> Source:
    """Image files or DICOM files: never both, because one of them would be left out silently."""
    scans = dicom.dicom_files(place, files)
    if not scans:
        return image_folder.open_folder(place, files)
    if any(path.lower().endswith(IMAGE_SUFFIXES + OTHER_SUFFIXES) for path in files):
        raise SourceError(
            f"{place.label} holds DICOM files and other images: give a folder with one kind of them"
        )
    return dicom.open_dicom(place, scans)
