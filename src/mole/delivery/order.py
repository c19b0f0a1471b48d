"""What a delivery is made from, gathered for those who make its parts."""

from dataclasses import dataclass

from mole.data.preparation import Preparation
from mole.data.source import Source
from mole.delivery.options import Options
from mole.files.store import Store
from mole.keys import MorphKey
from mole.layer import FirstLayer


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
