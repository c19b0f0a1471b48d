"""What a key is, and what its files hold once they are decrypted: a short text, and perhaps a whitening.

    # Morphed Learning key. Whoever has it can undo the morphing: keep it secret.
    mole-key: 1
    fingerprint: 0f2c...
    input-shape: 3x32x32
    kappa: 1
    core: orthogonal
    layout: rows
    draw: 0
    seed: 9b1d...

The whitening, which has as many numbers as the core, lies in a second file beside it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from mole.errors import KeyFileError, MoleError, ParameterError
from mole.provider.keys.derivation import derive_bytes
from mole.scheme.cores import CORE_KINDS
from mole.scheme.layouts import LAYOUTS, Layout
from mole.scheme.shapes import Shape, block_size, check_shape, valid_kappas
from mole.scheme.whitening import Whitening

VERSION = 1
MAX_CORE_SIDE = 16_384  # 2 GB in 64 bits, and minutes to draw
MIN_CORE_SIDE = 16  # a smaller one hides nothing worth the name
COMMENT = "# Morphed Learning key. Whoever has it can undo the morphing: keep it secret."
MAX_TEXT_BYTES = 4096
SUFFIX = ".whitening"

_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,11})")
_SHAPE = re.compile(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS = ("mole-key", "fingerprint", "input-shape", "kappa", "core", "layout", "draw", "seed")


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


def write_key_text(parameters: KeyParameters, seed: bytes) -> str:
    """The text of a key."""
    lines = [
        COMMENT,
        f"mole-key: {VERSION}",
        f"fingerprint: {parameters.fingerprint(seed)}",
        f"input-shape: {'x'.join(map(str, parameters.input_shape))}",
        f"kappa: {parameters.kappa}",
        f"core: {parameters.core}",
        f"layout: {parameters.layout}",
        f"draw: {parameters.draw}",
    ]
    if parameters.whitening is not None:
        lines.append(f"whitening: {parameters.whitening}")
    lines.append(f"seed: {seed.hex()}")
    return "\n".join(lines) + "\n"


def read_key_text(content: bytes, name: str) -> tuple[KeyParameters, bytes]:
    """Parameters and seed from the text of a key; `name` is the file's, for messages."""
    fields = _fields(content, name)
    _check_version(fields, name)
    parameters = _parameters(fields, name)
    if not _DIGEST.fullmatch(fields["seed"]):
        raise _malformed(name, "seed")
    seed = bytes.fromhex(fields["seed"])
    if fields["fingerprint"] != parameters.fingerprint(seed):
        raise KeyFileError(
            f"{name}: its fingerprint does not match its content, so a line was changed: "
            "use an unchanged copy"
        )
    return parameters, seed


def whitening_path(key_path: Path) -> Path:
    """Where the whitening of a key lies: beside it.

    >>> whitening_path(Path("provider.key")).name
    'provider.key.whitening'
    """
    return key_path.with_name(key_path.name + SUFFIX)


def write_whitening(whitening: Whitening) -> bytes:
    """The plain content of a whitening file."""
    return save_tensors({"whitening": whitening.matrix})


def read_whitening(content: bytes, *, digest: str, name: str) -> Whitening:
    """The whitening that a key with this digest asks for."""
    try:
        whitening = Whitening(load_tensors(content)["whitening"])
    except (SafetensorError, MoleError, KeyError, ValueError):
        raise KeyFileError(f"{name} decrypts to something that is not a whitening") from None
    if whitening.digest != digest:
        raise KeyFileError(f"{name} belongs to another key: use the file that was saved with this one")
    return whitening


def _fields(content: bytes, name: str) -> dict[str, str]:
    if len(content) > MAX_TEXT_BYTES:
        raise KeyFileError(f"{name} decrypts to something too long to be a Morphed Learning key")
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise KeyFileError(f"{name} decrypts to something that is not a Morphed Learning key") from None
    fields: dict[str, str] = {}
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        field, separator, value = line.partition(":")
        if not separator or field in fields:
            raise KeyFileError(f"{name} decrypts to something that is not a Morphed Learning key")
        fields[field] = value.strip()
    return fields


def _check_version(fields: dict[str, str], name: str) -> None:
    version = fields.get("mole-key", "")
    if not _DECIMAL.fullmatch(version):
        raise KeyFileError(f"{name} decrypts to something that is not a Morphed Learning key")
    if int(version) > VERSION:
        raise KeyFileError(
            f"{name} is a key of version {version} and this program knows {VERSION}: "
            "upgrade morphed-learning"
        )
    expected = {*_FIELDS, *(["whitening"] if fields.get("core") == "whitened" else [])}
    if int(version) < 1 or set(fields) != expected:
        raise KeyFileError(f"{name} is not a valid key: lines are missing or unknown")


def _parameters(fields: dict[str, str], name: str) -> KeyParameters:
    patterns = {"kappa": _DECIMAL, "draw": _DECIMAL, "input-shape": _SHAPE, "whitening": _DIGEST}
    for field, pattern in patterns.items():
        if field in fields and not pattern.fullmatch(fields[field]):
            raise _malformed(name, field)
    if fields["core"] not in CORE_KINDS:
        raise _malformed(name, "core")
    if fields["layout"] not in LAYOUTS:
        raise _malformed(name, "layout")
    parameters = KeyParameters(
        input_shape=tuple(int(side) for side in fields["input-shape"].split("x")),
        kappa=int(fields["kappa"]),
        core=fields["core"],
        layout=fields["layout"],
        draw=int(fields["draw"]),
        whitening=fields.get("whitening"),
    )
    try:
        block_size(check_shape(parameters.input_shape), parameters.kappa)
    except MoleError as error:
        raise KeyFileError(f"{name}: {error}") from None
    return parameters


def _malformed(name: str, field: str) -> KeyFileError:
    # The value stays out of the message: it may be the seed.
    return KeyFileError(f"{name} is not a valid key: its line '{field}' cannot be read")
