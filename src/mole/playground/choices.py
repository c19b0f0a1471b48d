"""What a visitor of the playground can choose: how pictures are morphed, and how much noise there is."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from mole.errors import ParameterError
from mole.provider.keys.derivation import MIN_CORE_SIDE
from mole.quantities import joined
from mole.scheme.layouts import TilesLayout, tile_sides
from mole.scheme.morphing import CORE_KINDS, CoreKind
from mole.scheme.shapes import Shape, block_size, valid_kappas
from mole.storage.typed_json import Fields

LayoutChoice = Literal["rows", "tiles"]
LAYOUT_CHOICES: tuple[LayoutChoice, ...] = get_args(LayoutChoice)
BITS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
MOST_DRAWS = 1000  # keys that can be asked for


@dataclass(frozen=True)
class MorphingChoice:
    """How pictures of one kind are morphed.

    Attributes:
        kind: of the pictures.
        layout: blocks of rows, or tiles.
        size: kappa for rows, the side of a tile for tiles.
        core: which kind of core.
        draw: which key: another number gives another one.
    """

    kind: str
    layout: LayoutChoice
    size: int
    core: CoreKind
    draw: int = 0

    @classmethod
    def parse(cls, fields: Fields, kind: str, shape: Shape) -> "MorphingChoice":
        """Read a choice from outside, for pictures of this shape.

        Raises:
            FormatError: if a field is missing or of another type.
            ParameterError: if a value cannot be chosen; the message names those that can.
        """
        layout = _one_of(fields.text("layout"), LAYOUT_CHOICES, "layout")
        core = _one_of(fields.text("core"), CORE_KINDS, "core")
        size = _one_of(fields.whole("size"), sizes(shape)[layout], "kappa" if layout == "rows" else "tile")
        return cls(kind, layout, size, core, fields.whole("draw", most=MOST_DRAWS))

    @property
    def kappa(self) -> int:
        """As `MorphKey.generate` takes it: tiles say themselves how many blocks there are."""
        return self.size if self.layout == "rows" else 1

    @property
    def tile(self) -> int | None:
        """As `MorphKey.generate` takes it."""
        return self.size if self.layout == "tiles" else None


def parse_bits(fields: Fields) -> float:
    """Read how many bits a protected row may tell at most.

    Raises:
        FormatError: if there is no such number.
        ParameterError: if it cannot be chosen.
    """
    return float(_one_of(fields.number("bits"), BITS, "bits"))


@cache
def sizes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Every kappa and every tile that leaves a core of useful size; with kappa = 1 there are no tiles.

    >>> sizes((1, 28, 28))
    {'rows': (1, 2, 4, 7, 8, 14, 16, 28, 49), 'tiles': (4, 7, 14)}
    """
    kappas = [kappa for kappa in valid_kappas(shape) if block_size(shape, kappa) >= MIN_CORE_SIDE]
    tiles = [TilesLayout.of_side(shape, side) for side in tile_sides(shape)]
    usable = [layout.tile for layout in tiles if layout.block >= MIN_CORE_SIDE and layout.kappa > 1]
    return {"rows": tuple(kappas), "tiles": tuple(usable)}


def _one_of(value: Any, values: tuple[Any, ...], name: str) -> Any:
    if value not in values:
        known = [f"{one:g}" if isinstance(one, float) else str(one) for one in values]
        raise ParameterError(f"{name} can be {joined(known, 'or')} here")
    return value
