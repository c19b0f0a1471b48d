"""Everything secret, derived from one 32-byte seed and what else a key is: its parameters.

    seed --HKDF-SHA256(info)--> 32-byte sub-key --ChaCha20--> stream of 64-bit words

`info` names the purpose and all parameters of the key, so that no two uses share a stream. The stream is
specified word by word in docs/format.md: the same seed must give the same core and the same channel order
on every machine and in every later version.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mole.errors import ParameterError
from mole.scheme.filling import tiles_over
from mole.scheme.layouts import Layout, RowsLayout, ShuffledTilesLayout, TilesLayout, tile_sides
from mole.scheme.morphing import CORE_KINDS
from mole.scheme.normals import normals_from
from mole.scheme.shapes import Shape, block_size, valid_kappas

SEED_BYTES = 32
NONCE = bytes(16)  # every sub-key is used for one stream only
WORDS_AT_ONCE = 1 << 19
VERSION = 1  # of the derivation, and of the file
MAX_CORE_SIDE = 16_384  # 2 GB in 64 bits, and minutes to draw
MIN_CORE_SIDE = 16  # a smaller one hides nothing worth the name


def derive_bytes(seed: bytes, info: str, length: int = 32) -> bytes:
    """HKDF-SHA256 without salt.

    >>> derive_bytes(bytes(32), "example", 4).hex()
    '239a04fe'
    """
    kdf = HKDF(algorithm=SHA256(), length=length, salt=None, info=info.encode())
    return kdf.derive(seed)


class WordStream:
    """ChaCha20's key stream as little-endian 64-bit words, and what is drawn with them.

    >>> stream = WordStream(bytes(32), "example")
    >>> sorted(stream.order(5).tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(self, seed: bytes, info: str) -> None:
        cipher = Cipher(algorithms.ChaCha20(derive_bytes(seed, info), NONCE), mode=None)
        self._encryptor = cipher.encryptor()

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """The next `count` words."""
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype="<u8")

    def below(self, limit: int, count: int) -> list[int]:
        """Whole numbers from 0 up to `limit`, without it: a word each, modulo the limit."""
        return [word % limit for word in self.take(count).tolist()]

    def order(self, length: int) -> npt.NDArray[np.intp]:
        """A random order of `length` things: the positions of `length` words, sorted by the words."""
        return np.argsort(self.take(length), kind="stable")

    def normals(self, count: int) -> npt.NDArray[np.float64]:
        """Independent standard normal numbers."""
        numbers = np.empty(count + count % 2)
        for start in range(0, len(numbers), WORDS_AT_ONCE):
            part = numbers[start : start + WORDS_AT_ONCE]
            part[:] = normals_from(self.take(len(part)))
        return numbers[:count]


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

    @classmethod
    def of(
        cls,
        input_shape: Shape,
        core: str,
        *,
        kappa: int = 1,
        tile: int | None = None,
        shuffled: bool = False,
    ) -> "KeyParameters":
        """Parameters for samples of a shape, in blocks of rows or in tiles, which zeros may have to fill.

        Raises:
            ParameterError: if no core can have them.
        """
        layout: Layout
        if tile is None:
            if shuffled:
                raise ParameterError("only tiles can be shuffled: give their side", advice={"tile": None})
            layout = RowsLayout(input_shape, kappa)
        else:
            if kappa != 1:
                raise ParameterError("tiles say themselves how many blocks there are: leave out kappa")
            # Zeros would make tiles that no network looks at, and shuffling put them between the others.
            cut = ShuffledTilesLayout.of_side if shuffled else tiles_over
            layout = cut(input_shape, tile)
        parameters = cls(layout.input_shape, int(layout.kappa), core, layout.name)
        parameters.check()
        return parameters

    def info(self, purpose: str) -> str:
        """What separates this use of the seed from every other use."""
        shape = "x".join(map(str, self.input_shape))  # spelt out: every key hangs on these very letters
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
        side = self.to_layout().block
        if side > MAX_CORE_SIDE:
            raise ParameterError(
                f"{self._cut} needs a core of side {side}, and {MAX_CORE_SIDE} is the limit: "
                f"{self._other(most=MAX_CORE_SIDE)}"
            )
        return side

    def refuse_small_core(self) -> None:
        """An error if the core would be too small to hide anything."""
        side = self.to_layout().block
        if side < MIN_CORE_SIDE:
            raise ParameterError(
                f"{self._cut} leaves a core of side {side}, which hides next to nothing: "
                f"{self._other(least=MIN_CORE_SIDE)}"
            )

    @property
    def _cut(self) -> str:
        """What decided the side of the core, in words."""
        layout = self.to_layout()
        return f"a tile of {layout.tile}" if isinstance(layout, TilesLayout) else f"kappa = {self.kappa}"

    def _other(self, *, least: int = 1, most: int = MAX_CORE_SIDE) -> str:
        """What to do for a core whose side lies between these two."""
        is_tiles = isinstance(self.to_layout(), TilesLayout)
        if is_tiles:
            tiles = [TilesLayout.of_side(self.input_shape, tile) for tile in tile_sides(self.input_shape)]
            sides = [(layout.tile, layout.block) for layout in tiles]
        else:
            kappas = reversed(valid_kappas(self.input_shape))  # the larger kappa, the smaller the core
            sides = [(kappa, block_size(self.input_shape, kappa)) for kappa in kappas]
        what = "a tile of" if is_tiles else "kappa ="
        usable = [number for number, side in sides if least <= side <= most]
        if not usable:
            return "give larger samples" if least > 1 else "give smaller samples"
        number = usable[0] if least > 1 else usable[-1]
        return f"use {what} {number} or {'more' if (least > 1) == is_tiles else 'less'}"
