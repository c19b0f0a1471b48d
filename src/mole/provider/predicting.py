"""Predictions by a developer's server for all images of a source, as a table."""

import warnings
from os import PathLike

import numpy as np
import pyarrow as pa

from mole.errors import MoleWarning
from mole.progress import Progress, no_progress
from mole.provider.at_home import Seen, chosen_split, class_numbers, classes_apart, plain_batches, table_of
from mole.provider.client import Client
from mole.sources.opening import open_source
from mole.sources.preparation import Mode, Preparation, Resize
from mole.sources.source import Source


def predict_images(
    client: Client,
    data: str | PathLike[str] | Source,
    *,
    split: str | None = None,
    mode: Mode | None = None,
    resize: Resize | None = None,
    skip_bad: bool = False,
    progress: Progress = no_progress,
) -> pa.Table:
    """An answer for every image: its name, the class, the probability of each class, and its label.

        predict_images(Client("grpc://127.0.0.1:8081", key, layer), "photos", resize="crop")

    Args:
        client: who asks.
        data: a source, or its folder, file or URL.
        split: which split; None for all.
        mode: how colours are brought to what the layer, or the front, takes.
        resize: how sizes are.
        skip_bad: leave out images that cannot be used.
        progress: told how many were answered.

    Raises:
        SourceError: if images cannot be read.
        ServerError: if the server cannot be reached in time, or refuses.
    """
    source = chosen_split(open_source(data), split)
    client.warn_of_resize(resize)
    served = client.served()
    shape, normalisation = client.takes
    preparation = Preparation(shape, normalisation, mode, resize)
    splits, names, labels, found = list[str](), list[str](), list[int](), []
    numbers = None
    if served.classes is not None:
        numbers = class_numbers(source, served.class_names, served.classes)
        if numbers is None:
            words = classes_apart(source, served.class_names, served.classes, "network")
            warnings.warn(f"labels are left out: {words}", MoleWarning, stacklevel=2)
    for name, index, plain in plain_batches(preparation, source, skip_bad=skip_bad):
        part = source.splits[name]
        originals = [part.read(one).values for one in index] if client.is_protected else None
        found.append(client.predict_plain(plain, originals=originals).probabilities)
        splits += [name] * len(index)
        names += [part.name_of(one) for one in index]
        if part.labels is not None and numbers is not None:
            labels += [numbers.get(int(one), -1) for one in part.labels[index]]
        progress(len(names), source.count)
    every = served.answers(found)
    known = np.array(labels, np.int64) if labels and len(labels) == len(names) else None
    seen = Seen(splits, names, every.probabilities.astype(np.float64), known, every.class_names)
    return table_of(seen, seen.scores, every.classes)
