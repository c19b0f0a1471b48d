"""Large age files, piece by piece: written as a stream, and read from any place in them.

pyrage makes and opens age files as a whole. A delivery is too large for that, and who wants the end of a
file should not decrypt all of it. So pyrage writes the header, which wraps a file key for each recipient,
and the payload follows in the format's pieces of 64 KiB (https://age-encryption.org/v1), each encrypted and
authenticated by itself, with its number and whether it is the last.
"""

import base64
import binascii
import hmac
import io
import os
import re
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

import pyrage
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mole.errors import DeliveryError

PIECE, TAG, NONCE, KEY = 1 << 16, 16, 16, 16
MAX_HEADER_BYTES = 1 << 16
_STANZA = re.compile(rb"^-> X25519 ([A-Za-z0-9+/]{43})\n([A-Za-z0-9+/]{43})$", re.MULTILINE)
_END = re.compile(rb"\n--- ([A-Za-z0-9+/]{43})\n")


class Header(NamedTuple):
    """The start of an age file: the part that its MAC covers, the MAC, and the length of it all."""

    text: bytes
    mac: bytes
    length: int

    @classmethod
    def read(cls, file: IO[bytes], name: str) -> "Header":
        """The header of a file, from its first bytes; `name` is the file's, for messages."""
        start = file.read(MAX_HEADER_BYTES)
        end = _END.search(start)
        if not start.startswith(b"age-encryption.org/v1\n") or end is None:
            raise DeliveryError(f"{name} is not an age file, or it is damaged: get the delivery again")
        return cls(start[: end.start() + len(b"\n---")], _decoded(end[1]), end.end())

    def file_key(self, secrets: Sequence[bytes]) -> bytes | None:
        """The file key, unwrapped with the first X25519 secret that fits; None where none does."""
        for share, body in _STANZA.findall(self.text):
            for secret in secrets:
                key = _unwrapped(_decoded(share), _decoded(body), secret)
                if key is not None:
                    return key
        return None

    def check(self, file_key: bytes, name: str) -> None:
        """Refuse a header that was changed."""
        found = hmac.digest(_derived(file_key, b"", b"header"), self.text, "sha256")
        if not hmac.compare_digest(found, self.mac):
            raise damaged(name)


class PieceReader(io.RawIOBase):
    """The clear content of an age file, to be read from any place in it; every byte is authenticated."""

    def __init__(self, file: IO[bytes], header: Header, file_key: bytes, name: str) -> None:
        self._file, self._name, self._start = file, name, header.length + NONCE  # first: closing needs them
        header.check(file_key, name)
        file.seek(header.length)
        nonce = file.read(NONCE)
        body = file.seek(0, os.SEEK_END) - self._start
        self._pieces = -(-body // (PIECE + TAG))
        rest = body % (PIECE + TAG)
        if (
            body < TAG or 0 < rest < TAG or (rest == TAG and self._pieces > 1)
        ):  # only the first may be empty
            raise damaged(name)
        self._size, self._position = body - self._pieces * TAG, 0
        self._cipher = ChaCha20Poly1305(_derived(file_key, nonce, b"payload"))
        self._kept = (self._pieces - 1, self._piece(self._pieces - 1))  # shows that nothing was cut off

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the clear content."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the content goes; how many bytes were read."""
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and self._position < self._size:
            number, offset = divmod(self._position, PIECE)
            if self._kept[0] != number:
                self._kept = (number, self._piece(number))
            part = memoryview(self._kept[1])[offset : offset + len(target) - filled]
            target[filled : filled + len(part)] = part
            filled += len(part)
            self._position += len(part)
        return filled

    def readall(self) -> bytes:
        """Everything from here to the end."""
        content = bytearray(max(0, self._size - self._position))
        self.readinto(content)
        return bytes(content)

    def close(self) -> None:
        """Close the encrypted file, too."""
        if not self.closed:
            self._file.close()
        super().close()

    def _piece(self, number: int) -> bytes:
        self._file.seek(self._start + number * (PIECE + TAG))
        sealed = self._file.read(PIECE + TAG)
        try:
            return self._cipher.decrypt(_nonce(number, is_last=number == self._pieces - 1), sealed, None)
        except InvalidTag:
            raise damaged(self._name) from None


def encrypt_stream(
    clear: IO[bytes], out: IO[bytes], recipients: Sequence["pyrage.x25519.Recipient"], secret: bytes
) -> None:
    """Write an age file for recipients, of whom one is the holder of the X25519 secret."""
    empty = io.BytesIO(pyrage.encrypt(b"", recipients))
    header = Header.read(empty, "a new file")
    file_key = header.file_key([secret])
    if file_key is None:
        raise DeliveryError("a file cannot be sealed: its writer is not one of its recipients")
    nonce = os.urandom(NONCE)
    out.write(empty.getvalue()[: header.length] + nonce)
    cipher = ChaCha20Poly1305(_derived(file_key, nonce, b"payload"))
    number, piece = 0, clear.read(PIECE)
    while True:
        following = clear.read(PIECE)
        out.write(cipher.encrypt(_nonce(number, is_last=not following), piece, None))
        if not following:
            return
        number, piece = number + 1, following


def damaged(name: str) -> DeliveryError:
    """What is said of a file whose bytes are not those that were encrypted."""
    return DeliveryError(f"{name} is damaged: it does not decrypt: get the delivery again")


def _unwrapped(share: bytes, body: bytes, secret: bytes) -> bytes | None:
    own = X25519PrivateKey.from_private_bytes(secret)
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(share))
        salt = share + own.public_key().public_bytes_raw()
        wrapping = ChaCha20Poly1305(_derived(shared, salt, b"age-encryption.org/v1/X25519"))
        key = wrapping.decrypt(bytes(12), body, None)
    except (InvalidTag, ValueError):
        return None
    return key if len(key) == KEY else None


def _derived(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(secret)


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def _decoded(text: bytes) -> bytes:
    """Base64 without padding; nothing for a text that is not the only one for its bytes, as age asks."""
    try:
        content = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return b""
    return content if base64.b64encode(content).rstrip(b"=") == text else b""
