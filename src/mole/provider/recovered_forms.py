"""Which form recovered samples are written in, by the name of the output, and whether they fit into it."""

import os
from pathlib import Path
from typing import Literal

from mole.errors import DeliveryError, FileError, ParameterError
from mole.exchange.delivery import Delivery
from mole.exchange.shards import MIXED
from mole.foreign_text import listed, shown
from mole.scheme.shapes import shape_text
from mole.storage.atomic import reason_of

Form = Literal["npz", "parquet", "images"]
"""What recovered samples are written as."""
CHOICES = "name it something.npz, something.parquet, or a folder, with a slash at its end"
IMAGE_CHANNELS = {"uint8": (1, 2, 3, 4), "uint16": (1,)}  # what a PNG file holds, and Pillow writes


def form_of(out: str) -> Form:
    """What a name asks for: by its ending, and a folder if it has none.

    >>> form_of("r.npz"), form_of("r.parquet"), form_of("photos"), form_of("v1.2/")
    ('npz', 'parquet', 'images', 'images')

    Raises:
        ParameterError: for any other ending.
    """
    ending = Path(out).suffix.lower()
    if out.endswith(("/", os.sep)) or not ending:
        return "images"
    if ending in (".npz", ".parquet"):
        return "npz" if ending == ".npz" else "parquet"
    raise ParameterError(f"'{shown(out)}' ends in {shown(ending)}, which cannot be written: {CHOICES}")


def check_form(delivery: Delivery, form: Form) -> None:
    """Refuse a form that cannot hold what a delivery was made from, before any work is done.

    Raises:
        DeliveryError: with a form that can.
    """
    types = {name: facts.source_dtype for name, facts in delivery.manifest.splits.items()}
    if form == "parquet" and len(set(types.values())) > 1:
        kinds = listed(f"{split}: {dtype}" for split, dtype in types.items())
        raise DeliveryError(f"the splits have different number types ({kinds}): write an .npz file")
    if form != "images":
        return
    shape = delivery.manifest.network_shape
    for dtype in types.values():
        if len(shape) != 3 or shape[0] not in IMAGE_CHANNELS.get(dtype, ()):
            why = " (as images of several number types come back)" if dtype == MIXED else ""
            raise DeliveryError(
                f"PNG files cannot hold {dtype} of {shape_text(shape)}{why}: write an .npz or a .parquet "
                "file"
            )


def check_folder_free(path: Path, *, force: bool) -> None:
    """Refuse a folder that is there already, unless it may be replaced and holds nothing but PNG files.

    Raises:
        FileError: if something would be lost.
    """
    try:
        if not (path.exists() or path.is_symlink()):
            return
        if path.is_symlink() or not path.is_dir():
            raise FileError(f"{path} is not a folder: choose another name")
        files = [entry for entry in path.rglob("*") if entry.is_symlink() or not entry.is_dir()]
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None
    if files and not force:
        raise FileError(
            f"{path} exists already: choose another name, or replace it", advice={"replace": True}
        )
    others = [entry.name for entry in files if entry.suffix != ".png" or entry.is_symlink()]
    if others:
        raise FileError(
            f"{path} holds more than PNG files ({listed(others, 2)}), and stays: choose another name"
        )
