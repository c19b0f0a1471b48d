"""Who can open a sealed delivery, as far as its files tell.

An age file shows how many recipients it has, and not who they are. Whoever opens it knows one of them all
the same: the public half of the identity that did.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyrage
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from mole.exchange.delivery import Delivery
from mole.exchange.manifest import NAME as MANIFEST
from mole.quantities import counted, joined
from mole.storage.age_stream import Header
from mole.storage.identities import x25519_identity, x25519_secrets
from mole.storage.sealed import SUFFIX, SealedStore

RECIPIENT = re.compile(rb"^-> (?:X25519|ssh-ed25519|ssh-rsa) ", re.MULTILINE)
TAG_BYTES = 4  # of the SHA-256 of an SSH key, by which age finds the one that opens a file
HOLDER = "as a rule the holder of the key"  # whoever seals by other means may leave it out


def recipient_count(delivery: Delivery) -> int:
    """For how many a delivery is sealed, as a rule its provider among them; 0 if it is not sealed."""
    return 0 if not isinstance(delivery.store, SealedStore) else _count(_header(delivery.store))


def recipients_in_words(delivery: Delivery) -> str:
    """Who can open it: by name those whose identity is at hand, and the others by their number."""
    if not isinstance(delivery.store, SealedStore):
        return "none: it is not sealed, so whoever gets hold of the files can read them"
    header = _header(delivery.store)
    named = [*dict.fromkeys(_named(header, delivery.store.identities))]
    others = _count(header) - len(named)
    if not others:
        return joined(named)
    if not named:
        return f"{counted(others, 'recipient')}, {HOLDER} among them; age does not show who they are"
    if others == 1:
        return f"{joined([*named, '1 other'])}, {HOLDER}; age does not show who it is"
    return f"{joined([*named, f'{others} others'])}, {HOLDER} among them; age does not show who they are"


def _header(store: SealedStore) -> Header:
    with store.inner.open(MANIFEST + SUFFIX) as file:
        return Header.read(file, store.label)


def _count(header: Header) -> int:
    return len(RECIPIENT.findall(header.text))


def _named(header: Header, identities: Sequence[str]) -> Iterator[str]:
    """The recipients among those whose identities are given."""
    for secret in x25519_secrets(identities):
        if header.file_key([secret]) is not None:
            yield str(pyrage.x25519.Identity.from_str(x25519_identity(secret)).to_public())
    for text in identities:
        for public in _ssh_public(text) if "PRIVATE KEY-----" in text else ():
            kind, key = public.split()[:2]
            tag = base64.b64encode(hashlib.sha256(base64.b64decode(key)).digest()[:TAG_BYTES]).rstrip(b"=")
            if b"\n-> %s %s" % (kind.encode(), tag) in header.text:
                yield public


def _ssh_public(text: str) -> Iterator[str]:
    """The public half of an SSH key, where it can be read."""
    load = load_ssh_private_key if "OPENSSH" in text else load_pem_private_key
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        public = load(text.encode(), None).public_key()
        yield public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
