"""What a key's files hold once they are decrypted: a short text, and the whitening of a whitened core.

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

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from mole.errors import KeyFileError, MoleError
from mole.provider.keys.derivation import VERSION, KeyParameters
from mole.scheme.layouts import LAYOUTS
from mole.scheme.morphing import CORE_KINDS
from mole.scheme.shapes import check_shape, shape_text
from mole.scheme.whitening import Whitening
from mole.storage.age import encrypt
from mole.storage.atomic import new_secret_file, reason_of

COMMENT = "# Morphed Learning key. Whoever has it can undo the morphing: keep it secret."
MAX_TEXT_BYTES = 4096
SUFFIX = ".whitening"
SHORTEST_PASSPHRASE = 8  # characters, of a new key

_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,11})")
_SHAPE = re.compile(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*")
_SHARE = re.compile(r"[01](\.[0-9]{1,18})?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS = ("mole-key", "fingerprint", "input-shape", "kappa", "core", "layout", "draw", "seed")


class KeyTexts(NamedTuple):
    """The contents of a key's files: its text, and the whitening of a whitened core."""

    text: bytes
    whitening: bytes | None

    def __repr__(self) -> str:
        return "KeyTexts(...)"


def write_key_text(parameters: KeyParameters, seed: bytes) -> str:
    """The text of a key."""
    lines = [
        COMMENT,
        f"mole-key: {VERSION}",
        f"fingerprint: {parameters.fingerprint(seed)}",
        f"input-shape: {shape_text(parameters.input_shape)}",
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


def refuse_second_file(path: Path) -> None:
    """Refuse the file that lies beside a key, where the key itself is needed.

    Raises:
        KeyFileError: with the name of the key.
    """
    key = path.with_name(path.name.removesuffix(SUFFIX))
    if key != path and key.exists():
        raise KeyFileError(f"{path} is the second file of a key, and not the key: give {key}")


def write_whitening(whitening: Whitening) -> bytes:
    """The plain content of a whitening file."""
    if whitening.blocks is None or whitening.shrinkage is None:
        return save_tensors({"whitening": whitening.matrix})
    known = {"blocks": str(whitening.blocks), "shrinkage": f"{whitening.shrinkage:.9f}"}
    return save_tensors({"whitening": whitening.matrix}, metadata=known)


def read_whitening(content: bytes, *, digest: str, name: str) -> Whitening:
    """The whitening that a key with this digest asks for."""
    try:
        whitening = Whitening(load_tensors(content)["whitening"], *_how_learnt(content))
    except (SafetensorError, MoleError, KeyError, ValueError):
        raise KeyFileError(f"{name} decrypts to something that is not a whitening") from None
    if whitening.digest != digest:
        raise KeyFileError(f"{name} belongs to another key: use the file that was saved with this one")
    return whitening


def _how_learnt(content: bytes) -> tuple[int | None, float | None]:
    """From how many blocks a whitening was learned, and its shrinkage; before version 0.6 none says."""
    length = int.from_bytes(content[:8], "little")
    known = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    blocks, shrinkage = known.get("blocks", ""), known.get("shrinkage", "")
    if not _DECIMAL.fullmatch(blocks) or not _SHARE.fullmatch(shrinkage):
        return None, None
    return int(blocks), float(shrinkage)


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
        check_shape(parameters.input_shape)
        parameters.to_layout()
    except MoleError as error:
        raise KeyFileError(f"{name}: {error}") from None
    return parameters


def _malformed(name: str, field: str) -> KeyFileError:
    # The value stays out of the message: it may be the seed.
    return KeyFileError(f"{name} is not a valid key: its line '{field}' cannot be read")


def check_passphrase(passphrase: str) -> str:
    """The same passphrase, unless it is too short for a new key: whoever has the file can try them all."""
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise KeyFileError(
            "the passphrase is empty: choose one"
            if not passphrase
            else f"a key's passphrase has at least {SHORTEST_PASSPHRASE} characters: choose a longer one"
        )
    return passphrase


def save_texts(
    path: Path, text: bytes, whitening: bytes | None, *, passphrase: str | None, recipients: Sequence[str]
) -> None:
    """Encrypt what a key's files hold and write all of them or none; never over an existing file."""
    if passphrase and not recipients:  # both, or none, is refused when it is encrypted
        check_passphrase(passphrase)
    files = {path: (text, True)}
    if whitening is not None:
        # First the whitening: a key that is there is complete.
        files = {whitening_path(path): (whitening, False), **files}
    for file in files:
        if file.exists() or file.is_symlink():
            raise KeyFileError(
                f"{file} exists already, and a key is never overwritten: choose another name"
            )
    encrypted = {
        file: encrypt(content, passphrase=passphrase, recipients=recipients, armoured=armoured)
        for file, (content, armoured) in files.items()
    }
    written: list[Path] = []
    try:
        for file, content in encrypted.items():
            new_secret_file(file, content)
            written.append(file)
    except BaseException as error:
        for file in written:
            file.unlink(missing_ok=True)
        if isinstance(error, OSError | ValueError):
            raise KeyFileError(f"{path} cannot be written: {reason_of(error)}") from None
        raise
