"""A few samples of the provider's data, for commands that look at them or learn from them."""

import numpy as np

from mole.cli.choices import Mode, Resize, text_of
from mole.progress import Progress, no_progress
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array


def read_samples(
    data: str,
    layer: FirstLayer,
    *,
    at_most: int,
    mode: Mode | None,
    resize: Resize | None,
    progress: Progress = no_progress,
) -> Array:
    """Plain data, (n, *input_shape): so many samples, spread evenly over the main split.

    Raises:
        BadSampleError: with the name of the first sample that cannot be used.
    """
    # Imported here, because these load pyarrow and Pillow.
    from mole.sources.opening import open_source  # noqa: PLC0415
    from mole.sources.preparation import (  # noqa: PLC0415
        Preparation,
        shaped_sample,
    )
    from mole.sources.source import main_split  # noqa: PLC0415

    split = main_split(open_source(data))
    preparation = Preparation.for_layer(layer, mode=text_of(mode), resize=text_of(resize))
    indices = np.linspace(0, len(split) - 1, min(at_most, len(split))).astype(int).tolist()
    parts = []
    for done, index in enumerate(indices):
        parts.append(preparation.plain(shaped_sample(split, index, preparation)[np.newaxis]))
        progress(done + 1, len(indices))
    return np.concatenate(parts)
