"""The second file of a whitened key: the whitening, encrypted like the key and bound to it by a hash."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from mole.errors import KeyFileError, MoleError
from mole.morphing import Whitening

SUFFIX = ".whitening"


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
