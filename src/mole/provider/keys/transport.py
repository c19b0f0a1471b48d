"""A key on its way to another of the provider's processes: sealed, with what opens it sent separately.

Engines may keep what they pass around in shared memory or on disk. So the key travels as an encrypted box,
which may lie anywhere, and a one-time opener of 32 bytes, which goes from memory to memory.
"""

import secrets
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from mole.errors import KeyFileError
from mole.provider.keys.key import MorphKey
from mole.provider.keys.key_file import read_key_text, read_whitening

NONCE = bytes(12)  # each opener is used once
LENGTH_BYTES = 4
NAME = "the key that was sent"


class Parcel(NamedTuple):
    """A sealed key, and what opens it."""

    opener: bytes
    box: bytes


def seal_key(key: MorphKey) -> Parcel:
    """Seal a key for another process.

    >>> parcel = seal_key(MorphKey.generate((1, 4, 4), insecure_seed=bytes(32)))
    >>> open_key(parcel).input_shape
    (1, 4, 4)
    """
    text, whitening = key.to_texts()
    opener = secrets.token_bytes(32)
    content = len(text).to_bytes(LENGTH_BYTES, "big") + text + (whitening or b"")
    return Parcel(opener, ChaCha20Poly1305(opener).encrypt(NONCE, content, None))


def open_key(parcel: Parcel) -> MorphKey:
    """The key in a parcel."""
    try:
        content = ChaCha20Poly1305(parcel.opener).decrypt(NONCE, parcel.box, None)
    except InvalidTag:
        raise KeyFileError(f"{NAME} cannot be opened: it was changed on its way") from None
    length = int.from_bytes(content[:LENGTH_BYTES], "big")
    text, whitening = content[LENGTH_BYTES:][:length], content[LENGTH_BYTES + length :]
    parameters, seed = read_key_text(text, NAME)
    if parameters.whitening is None:
        return MorphKey(parameters, seed)
    return MorphKey(parameters, seed, read_whitening(whitening, digest=parameters.whitening, name=NAME))
