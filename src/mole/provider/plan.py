"""What a delivery is made from, gathered for those who make its parts."""

from dataclasses import dataclass

from mole.provider.keys import MorphKey
from mole.scheme.first_layer import FirstLayer
from mole.sources.preparation import Mode, Preparation, Resize
from mole.sources.source import Source
from mole.storage.stores import Store


@dataclass(frozen=True)
class Options:
    """The provider's choices.

    Attributes:
        dtype: how morphed values are stored: 'float32', 'float16' or 'int8'.
        layer_dtype: how the augmented layer is stored: 'float32' or 'float16'; None to leave it out, for
            further data under a key whose augmented layer the developer has.
        mode, resize: how images are brought to the layer's shape; None refuses those that do not fit.
        keep: further columns to hand over.
        skip_bad: leave out samples that cannot be read, instead of stopping.
        class_names: hand over the names of the classes.
        rows_per_shard: rows in a shard, at most; None for about 64 MB of 32-bit values.
    """

    dtype: str = "float32"
    layer_dtype: str | None = "float32"
    mode: Mode | None = None
    resize: Resize | None = None
    keep: tuple[str, ...] = ()
    skip_bad: bool = False
    class_names: bool = True
    rows_per_shard: int | None = None


@dataclass(frozen=True)
class Order:
    """Source, layer and key, where the delivery goes, the provider's choices, and a name for all this."""

    source: Source
    layer: FirstLayer
    key: MorphKey
    store: Store
    options: Options
    delivery_id: str

    @property
    def preparation(self) -> Preparation:
        """How samples become plain data."""
        return Preparation.for_layer(self.layer, mode=self.options.mode, resize=self.options.resize)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes that leave, if any."""
        return self.source.classes if self.options.class_names else None
