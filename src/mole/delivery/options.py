"""The provider's choices for a delivery."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The provider's choices.

    Attributes:
        dtype: how morphed values are stored: 'float32', 'float16' or 'int8'.
        layer_dtype: how the augmented layer is stored: 'float32' or 'float16'; None to leave it out, for
            further data under a key whose augmented layer the developer has.
        mode, resize: how images are brought to the layer's shape; None refuses those that do not fit.
        keep: further columns to hand over.
        skip_bad: leave out samples that can not be read, instead of stopping.
        class_names: hand over the names of the classes.
        rows_per_shard: rows in a shard, at most; None for about 64 MB of 32-bit values.
    """

    dtype: str = "float32"
    layer_dtype: str | None = "float32"
    mode: str | None = None
    resize: str | None = None
    keep: tuple[str, ...] = ()
    skip_bad: bool = False
    class_names: bool = True
    rows_per_shard: int | None = None
