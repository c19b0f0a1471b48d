"""What morphing costs: as published, as counted, and as measured on this machine."""

import time
from collections.abc import Callable, Mapping

import numpy as np

from mole.analysis import Figure
from mole.audit.report import Cost
from mole.audit.subject import Subject
from mole.quantities import size_text
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.convolution import features_of
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import Layout
from mole.scheme.shapes import Array

SAMPLES, ROUNDS = 64, 3


def costs_of(subject: Subject, figures: Mapping[str, Figure]) -> tuple[Cost, ...]:
    """The overhead of a subject, of which these figures are known; nothing without its first layer."""
    if subject.layer is None or subject.augmented is None:
        return ()
    measured = _measured(subject, subject.layer, subject.augmented)
    return tuple(
        _cost(figures[name], measured.get(name))
        for name in ("provider macs", "developer macs", "layer elements", "data share")
        if name in figures
    )


def _cost(figure: Figure, measured: str | None) -> Cost:
    return Cost(
        what=figure.what,
        published=figure.words("by_formula"),
        counted=figure.words("counted"),
        measured=measured,
        remark=figure.remark,
    )


def _measured(subject: Subject, layer: FirstLayer, augmented: AugmentedLayer) -> dict[str, str]:
    """Milliseconds per image of the two products, on this machine; bytes of the layer."""
    batch = np.ascontiguousarray(subject.morphed[:SAMPLES], np.float32)
    layout = Layout.of(subject.layout, subject.input_shape, subject.kappa)
    core, blocks = np.eye(layout.block, dtype=np.float32), layout.to_blocks(batch)
    morph, plain, dense = (
        _milliseconds(work, len(batch))
        for work in (
            lambda: blocks @ core,
            lambda: features_of(layer, batch),
            lambda: augmented.features(batch),
        )
    )
    return {
        "provider macs": f"{morph:.2g} ms per image",
        "developer macs": f"{dense:.2g} ms per image, where the plain layer takes {plain:.2g}",
        "layer elements": size_text(augmented.nbytes),
        "data share": f"{augmented.nbytes / _data_bytes(subject):.2g} times these rows as float32",
    }


def _data_bytes(subject: Subject) -> int:
    """Of the rows that the figure beside it counts, of which not all need to have been read."""
    per_row = subject.morphed.nbytes // len(subject.morphed)
    return per_row * (subject.rows or len(subject.morphed))


def _milliseconds(work: Callable[[], Array], images: int) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * min(times) / images
