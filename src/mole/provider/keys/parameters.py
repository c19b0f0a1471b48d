"""What a key is, apart from its seed: which samples it morphs, and how."""

from dataclasses import dataclass

from mole.errors import ParameterError
from mole.provider.keys.derivation import derive_bytes
from mole.scheme.cores import CORE_KINDS
from mole.scheme.layouts import Layout
from mole.scheme.shapes import Shape, block_size, valid_kappas

VERSION = 1  # of the derivation, and of the file
MAX_CORE_SIDE = 16_384  # 2 GB in 64 bits, and minutes to draw
MIN_CORE_SIDE = 16  # a smaller one hides nothing worth the name


@dataclass(frozen=True)
class KeyParameters:
    """The part of a key that is not secret, though nobody needs to know it.

    Attributes:
        input_shape: shape of the samples that the key morphs.
        kappa: how many times the core stands on the diagonal.
        core: which kind of core.
        layout: which elements a block covers.
        draw: how many draws came before this core and were refused for their condition.
        whitening: SHA-256 of the whitening's bytes, for a whitened core.
    """

    input_shape: Shape
    kappa: int
    core: str
    layout: str = "rows"
    draw: int = 0
    whitening: str | None = None

    def info(self, purpose: str) -> str:
        """What separates this use of the seed from every other use."""
        shape = "x".join(map(str, self.input_shape))
        return (
            f"morphed-learning/v{VERSION}/{purpose}/shape={shape}/kappa={self.kappa}"
            f"/core={self.core}/layout={self.layout}/draw={self.draw}/whitening={self.whitening or '-'}"
        )

    def fingerprint(self, seed: bytes) -> str:
        """A public name for the key: 32 hexadecimal digits that say nothing about the seed."""
        return derive_bytes(seed, self.info("fingerprint"), 16).hex()

    def to_layout(self) -> Layout:
        """Which elements each block covers."""
        return Layout.of(self.layout, self.input_shape, self.kappa)

    def check(self) -> int:
        """The side of the core, or an error for parameters that no core can have."""
        if self.core not in CORE_KINDS:
            raise ParameterError(f"core '{self.core}' is unknown", advice={"core": CORE_KINDS})
        side = block_size(self.input_shape, self.kappa)
        if side > MAX_CORE_SIDE:
            smallest = min(kappa for kappa, other in self._sides() if other <= MAX_CORE_SIDE)
            raise ParameterError(
                f"kappa = {self.kappa} needs a core of side {side}, and {MAX_CORE_SIDE} is the limit: "
                f"use kappa = {smallest} or more"
            )
        return side

    def refuse_small_core(self) -> None:
        """An error if the core would be too small to hide anything."""
        side = block_size(self.input_shape, self.kappa)
        if side >= MIN_CORE_SIDE:
            return
        largest = max((kappa for kappa, other in self._sides() if other >= MIN_CORE_SIDE), default=None)
        advice = "give larger samples" if largest is None else f"use kappa = {largest} or less"
        raise ParameterError(
            f"kappa = {self.kappa} leaves a core of side {side}, which hides next to nothing: {advice}"
        )

    def _sides(self) -> list[tuple[int, int]]:
        """Every kappa that samples of this shape could have, and the side of its core."""
        return [(kappa, block_size(self.input_shape, kappa)) for kappa in valid_kappas(self.input_shape)]
