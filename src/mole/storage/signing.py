"""Signatures in OpenSSH's format, which `ssh-keygen -Y sign` and `ssh-keygen -Y verify` know too.

    signed = SigningKey.load("provider_ed25519").sign(content, "mole-delivery")
    Signature.parse(signed, "manifest.json.sig").check(content, "mole-delivery")

A checksum shows that nothing was damaged; a signature shows who made it. The keys are Ed25519 keys as
`ssh-keygen -t ed25519` makes them. A namespace says what is signed, so that a signature of one thing does
not serve for another (OpenSSH, PROTOCOL.sshsig).
"""

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from mole.errors import FileError, KeyFileError
from mole.storage.age import read_limited

MAGIC, KIND = b"SSHSIG", b"ssh-ed25519"
HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
MAX_KEY_BYTES = 1 << 16
_ARMOUR = re.compile(
    r"\s*-----BEGIN SSH SIGNATURE-----\s+([A-Za-z0-9+/=\s]+)-----END SSH SIGNATURE-----\s*", re.ASCII
)


class SigningKey:
    """An Ed25519 private key that signs.

    Attributes:
        fingerprint: its public key's, as `ssh-keygen -l` shows it.
    """

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self._public = _string(KIND) + _string(private.public_key().public_bytes_raw())
        self.fingerprint = fingerprint(self._public)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], passphrase: str | Callable[[], str] | None = None
    ) -> "SigningKey":
        """Read an OpenSSH private key.

        Args:
            path: its file.
            passphrase: what it is encrypted with, or a function that is asked for it if it is needed.

        Raises:
            KeyFileError: if it cannot be read, is encrypted otherwise, or is not an Ed25519 key.
        """
        content = read_limited(Path(path), MAX_KEY_BYTES)
        try:
            try:
                private = load_ssh_private_key(content, None)
            except TypeError:  # it is encrypted
                secret = passphrase() if callable(passphrase) else passphrase
                if secret is None:
                    raise KeyFileError(
                        f"{path} is protected by a passphrase: use SigningKey.load(path, passphrase)"
                    ) from None
                private = load_ssh_private_key(content, secret.encode())
        except UnsupportedAlgorithm:
            raise KeyFileError(
                f"{path} is of a kind, or encrypted in a way, that cannot be used here: make a key with "
                "ssh-keygen -t ed25519"
            ) from None
        except (ValueError, TypeError):  # the latter for an empty passphrase
            raise KeyFileError(
                f"{path} is not an OpenSSH private key, or the passphrase is wrong"
            ) from None
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyFileError(f"{path} is not an Ed25519 key: make one with ssh-keygen -t ed25519")
        return cls(private)

    def sign(self, content: bytes, namespace: str) -> str:
        """A signature of some content, as text."""
        signed = self._private.sign(_to_be_signed(content, namespace.encode(), b"sha512"))
        parts = (self._public, namespace.encode(), b"", b"sha512", _string(KIND) + _string(signed))
        blob = MAGIC + (1).to_bytes(4, "big") + b"".join(map(_string, parts))
        text = base64.b64encode(blob).decode()
        lines = [text[start : start + 70] for start in range(0, len(text), 70)]
        return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])

    def __repr__(self) -> str:
        return f"SigningKey({self.fingerprint})"


Signer = SigningKey | str | os.PathLike[str] | Callable[[], SigningKey | None]


def signing_key(signer: Signer | None) -> SigningKey | None:
    """The key itself, loaded from its file, or returned by a function; None if nothing is to be signed."""
    if isinstance(signer, str | os.PathLike):
        return SigningKey.load(signer)
    return signer if signer is None or isinstance(signer, SigningKey) else signer()


@dataclass(frozen=True)
class Signature:
    """A signature that was read, and is not believed yet.

    Attributes:
        public: the public key that it names, as in a line of `known_hosts`.
        namespace: what kind of thing was signed.
        hash_name: the hash that it signs.
        value: the signature itself.
        name: the file's, for messages.
    """

    public: bytes
    namespace: bytes
    hash_name: bytes
    value: bytes
    name: str

    @classmethod
    def parse(cls, text: bytes | str, name: str) -> "Signature":
        """Read the text of a signature; an error if it is none, or not by an Ed25519 key."""
        decoded = text if isinstance(text, str) else text.decode("ascii", "replace")
        armoured = _ARMOUR.fullmatch(decoded)
        try:
            blob = base64.b64decode("".join(armoured[1].split()), validate=True) if armoured else b""
            if not blob.startswith(MAGIC + (1).to_bytes(4, "big")):
                raise ValueError("no signature")
            public, namespace, _, hash_name, signed = _strings(blob[len(MAGIC) + 4 :], 5)
            (kind, _), (signed_kind, value) = _strings(public, 2), _strings(signed, 2)
        except (ValueError, binascii.Error):
            raise FileError(f"{name} is not a signature of OpenSSH's, or it is damaged") from None
        if (kind, signed_kind) != (KIND, KIND) or hash_name not in HASHES:
            raise FileError(f"{name} was not made with an Ed25519 key: ask for one that was")
        return cls(public, namespace, hash_name, value, name)

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the key that it names."""
        return fingerprint(self.public)

    def check(self, content: bytes, namespace: str) -> None:
        """Refuse a signature of something else; whose key it is, is another question.

        Raises:
            FileError: if it is not the signature of this content in this namespace.
        """
        if self.namespace != namespace.encode():
            raise FileError(f"{self.name} signs something else: its namespace is not {namespace}")
        _, raw = _strings(self.public, 2)
        try:
            Ed25519PublicKey.from_public_bytes(raw).verify(
                self.value, _to_be_signed(content, self.namespace, self.hash_name)
            )
        except (InvalidSignature, ValueError):
            raise FileError(f"{self.name} is not a signature of this content: it was changed") from None


def fingerprint(public: bytes) -> str:
    """A public key's fingerprint, as `ssh-keygen -l` shows it.

    >>> fingerprint(b"")
    'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU'
    """
    return "SHA256:" + base64.b64encode(hashlib.sha256(public).digest()).decode().rstrip("=")


def _to_be_signed(content: bytes, namespace: bytes, hash_name: bytes) -> bytes:
    digest = HASHES[hash_name](content).digest()
    return MAGIC + b"".join(map(_string, (namespace, b"", hash_name, digest)))


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _strings(content: bytes, count: int) -> list[bytes]:
    """Exactly so many strings, each after its length; ValueError for anything else."""
    found = []
    for _ in range(count):
        length = int.from_bytes(content[:4], "big")
        if len(content) < 4 + length:
            raise ValueError("cut off")
        found.append(content[4 : 4 + length])
        content = content[4 + length :]
    if content:
        raise ValueError("too long")
    return found
