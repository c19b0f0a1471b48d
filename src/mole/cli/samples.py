"""A few samples of the provider's data, for commands that look at them or learn from them."""

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
    """Plain data, (n, *input_shape): at most so many samples of a data set, spread evenly over it."""
    # Imported here, because these load pyarrow and Pillow.
    from mole.sources.opening import open_source  # noqa: PLC0415
    from mole.sources.preparation import Preparation  # noqa: PLC0415

    preparation = Preparation(layer.input_shape, layer.normalisation, text_of(mode), text_of(resize))
    return preparation.samples(open_source(data), at_most, progress=progress)
