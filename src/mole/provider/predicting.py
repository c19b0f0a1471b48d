"""Predictions by a developer's server for all images of a source, as a table."""

import hashlib
import json
import warnings
from dataclasses import replace
from os import PathLike

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mole.errors import MoleWarning, ServerError
from mole.progress import Progress, no_progress
from mole.provider.at_home import Seen, chosen_split, class_numbers, classes_apart, plain_batches, table_of
from mole.provider.client import Client
from mole.provider.counted_source import NamingSplit
from mole.provider.kept_answers import KeptAnswers
from mole.quantities import counted
from mole.sources.opening import open_source
from mole.sources.preparation import Mode, Preparation, Resize
from mole.sources.source import Source, Split


def predict_images(
    client: Client,
    data: str | PathLike[str] | Source,
    *,
    split: str | None = None,
    mode: Mode | None = None,
    resize: Resize | None = None,
    skip_bad: bool = False,
    kept: KeptAnswers | None = None,
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
        kept: where answers are kept as they come: an image whose answer is there is not asked about again.
        progress: told how many were answered.

    Warns:
        MoleWarning: if answers are there, or the images are of other classes than the network knows.

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
    if client.is_protected:  # what is counted and what is sent come of one look at a file
        naming: dict[str, Split] = {
            name: NamingSplit(part, client.key) for name, part in source.splits.items()
        }
        source = replace(source, splits=naming)
    asking = _Asking(client, kept)
    for name, index, plain in plain_batches(preparation, source, skip_bad=skip_bad):
        part = source.splits[name]
        found.append(asking.probabilities(name, part, index, plain))
        splits += [name] * len(index)
        names += [part.name_of(one) for one in index]
        if part.labels is not None and numbers is not None:
            labels += [numbers.get(int(one), -1) for one in part.labels[index]]
        progress(len(names), source.count)
    every = served.answers(found)
    known = np.array(labels, np.int64) if labels and len(labels) == len(names) else None
    seen = Seen(splits, names, every.probabilities.astype(np.float64), known, every.class_names)
    return table_of(seen, seen.scores, every.classes)


class _Asking:
    """Asks about images whose answers are not there already, and keeps those that come."""

    def __init__(self, client: Client, kept: KeptAnswers | None) -> None:
        self._client, self._kept = client, kept
        self._call = "" if kept is None else client.call()
        self._before = {} if kept is None else kept.of(self._call)
        if kept is not None and self._before:
            warnings.warn(
                f"{counted(len(self._before), 'answer')} to an earlier call are taken from {kept.path}: "
                "remove it to ask for all again",
                MoleWarning,
                stacklevel=3,
            )

    def probabilities(
        self, name: str, part: Split, index: list[int], plain: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        """Those of some images of a split, (n, classes)."""
        known = [self._digest(name, part.name_of(one), row) for one, row in zip(index, plain, strict=True)]
        missing = [place for place, digest in enumerate(known) if digest not in self._before]

        found = {
            place: self._before[digest] for place, digest in enumerate(known) if digest in self._before
        }
        # Protected ones are counted before they are sent: no more at a time than are under way.
        step = self._client.at_once if self._client.is_protected else max(1, len(missing))
        for start in range(0, len(missing), step):
            asked = missing[start : start + step]
            images = [index[one] for one in asked]
            answers = self._ask(part, images, plain[asked], [known[one] for one in asked])
            found |= zip(asked, answers, strict=True)
        if self._kept is not None and len({len(row) for row in found.values()}) > 1:
            raise ServerError(
                f"the server's network has other classes than that of the answers in {self._kept.path}: "
                "remove that file, and call again"
            )
        return np.stack([found[place] for place in range(len(known))])

    def _ask(
        self, part: Split, index: list[int], plain: npt.NDArray[np.float32], digests: list[str]
    ) -> npt.NDArray[np.float32]:
        """Ask about images, and keep what comes."""

        def arrived(start: int, rows: npt.NDArray[np.float32]) -> None:
            if self._kept is not None:
                self._kept.keep(self._call, digests[start : start + len(rows)], rows)

        originals = [part.digests.pop(one) for one in index] if isinstance(part, NamingSplit) else None
        return self._client.predict_plain(plain, originals=originals, arrived=arrived).probabilities

    def _digest(self, split: str, name: str, plain: npt.NDArray[np.float32]) -> str:
        """What names an image of a call; only the holder of the key can compute it."""
        if self._kept is None:
            return ""
        content = hashlib.sha256(plain.tobytes()).hexdigest()
        return self._client.key.mac("image-of-call", json.dumps([split, name, content]))
