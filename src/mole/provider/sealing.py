"""Sealed deliveries, from the provider's side: encrypted for the developer, and for the provider itself.

The provider can open what it sealed, because an age identity of its own follows from its key: so work that
was interrupted resumes, and `recover` and `audit` need nothing but the key. That gives nobody anything new,
for whoever has the key can undo the morphing anyway.
"""

import os
from collections.abc import Sequence

import pyrage

from mole.errors import DeliveryError
from mole.exchange.delivery import UNFINISHED, Delivery
from mole.exchange.manifest import NAME as MANIFEST
from mole.foreign_text import shown
from mole.provider.keys import MorphKey
from mole.storage.identities import Identity, identity_texts, x25519_identity
from mole.storage.sealed import SUFFIX, ForAnotherError, SealedStore, is_sealed
from mole.storage.stores import Store, open_store

Address = str | os.PathLike[str]
WORDS = 4  # of 64 bits, in an X25519 secret


def own_identity(key: MorphKey) -> str:
    """The age identity that follows from a key; as secret as the key.

    >>> key = MorphKey.generate((1, 4, 4), insecure_seed=bytes(32))  # for examples only
    >>> own_identity(key)[:16], own_identity(key) == own_identity(key)
    ('AGE-SECRET-KEY-1', True)
    """
    return x25519_identity(key.stream("sealing").take(WORDS).astype("<u8").tobytes())


def delivery_store(out: Address | Store, recipients: Sequence[str], key: MorphKey) -> Store:
    """Where a delivery is written: the place itself, or with recipients a sealed store in it.

    Raises:
        DeliveryError: if clear files lie where sealed ones would go, or files sealed under another key.
    """
    store = open_store(os.fspath(out)) if isinstance(out, str | os.PathLike) else out
    if not recipients or isinstance(store, SealedStore):
        return store
    if clear := sorted(name for name in store.names() if not name.endswith(SUFFIX)):
        raise DeliveryError(
            f"{store.label} holds files that are not sealed, such as {shown(clear[0])}: choose another "
            "place"
        )
    identity = own_identity(key)
    own = str(pyrage.x25519.Identity.from_str(identity).to_public())
    sealed = SealedStore(store, identities=[identity], recipients=[*recipients, own])
    for name in {MANIFEST, UNFINISHED} & sealed.names():
        try:
            sealed.open(name).close()
        except ForAnotherError:
            raise DeliveryError(
                f"{store.label} holds a delivery that was sealed under another key: use that key, choose "
                "another place, or replace it",
                advice={"replace": True},
            ) from None
        except DeliveryError:  # damaged, or removed just now: whoever needs it says so
            continue
    return sealed


def opened_with(
    delivery: Delivery | Store | Address, key: MorphKey | None, identity: Identity | None = None
) -> Delivery:
    """An opened delivery; one that was sealed under the key needs no other identity."""
    if key is None:
        return Delivery.open(delivery, identity=identity)
    try:
        return Delivery.open(delivery, identity=[*identity_texts(identity), own_identity(key)])
    except ForAnotherError:
        if identity is not None:
            raise
        place = os.fspath(delivery) if isinstance(delivery, str | os.PathLike) else delivery.label
        raise DeliveryError(
            f"{place} is not sealed for this key: use the key it was made with, or give an identity"
        ) from None


def look_at(delivery: Address) -> None:
    """Refuse what is not a delivery, as far as that can be told before a key is there."""
    if not is_sealed(open_store(os.fspath(delivery)).names()):
        Delivery.open(delivery)
