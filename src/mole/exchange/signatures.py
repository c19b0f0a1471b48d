"""Who made it: signatures of a delivery, over its manifest, and of a first layer, over its file.

The manifest has the digest of every other file of a delivery, so one signature speaks for all of them. It
lies beside what it signs, under that name and `.sig`; in a sealed delivery it is sealed as well.
"""

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mole.errors import DeliveryError, FileError, LayerFileError
from mole.exchange.delivery import Delivery
from mole.exchange.layer_files import load_first_layer
from mole.exchange.manifest import NAME as MANIFEST
from mole.scheme.first_layer import FirstLayer
from mole.storage.atomic import new_file, reason_of
from mole.storage.signers import read_signers
from mole.storage.signing import Signature, SigningKey
from mole.storage.stores import LocalStore, Store, StoredFile, read_at_most

SUFFIX = ".sig"
SIGNATURE = MANIFEST + SUFFIX
DELIVERY, FIRST_LAYER = "mole-delivery", "mole-first-layer"
NOT_SIGNED = "not signed"
MAX_BYTES = 1 << 20
Address = str | os.PathLike[str]


def sign_delivery(store: Store, key: SigningKey) -> None:
    """Sign a finished delivery; a signature that is there is replaced."""
    store.write(SIGNATURE, key.sign(store.read(MANIFEST), DELIVERY).encode())


def check_delivery(delivery: Delivery, signer: Address | None = None) -> str:
    """Who signed a delivery, in words.

    The manifest is checked as it was read when the delivery was opened: what lies there now may be another.

    Args:
        delivery: an opened one.
        signer: whose signature is wanted: a public key, its file, or a file of allowed signers. Without
            one any signature will do, and none.

    Raises:
        FileError: if the signature is not of this delivery, or is not the signer's.
    """
    store = delivery.store
    if SIGNATURE not in store.names():
        return _unsigned(store.label, signer)
    signature = Signature.parse(read_at_most(store, SIGNATURE, MAX_BYTES), f"{store.label}/{SIGNATURE}")
    return _checked(signature, delivery.manifest_bytes, DELIVERY, signer)


def sign_layer(path: Address, key: SigningKey) -> Path:
    """Sign a first layer's file; where the signature lies."""
    path, signed = Path(path), Path(f"{os.fspath(path)}{SUFFIX}")
    text = key.sign(_content(path), FIRST_LAYER)
    try:
        with new_file(signed) as temporary:
            temporary.write_text(text, encoding="ascii")
    except OSError as error:
        raise LayerFileError(f"{signed} cannot be written: {reason_of(error)}") from None
    return signed


def load_signed_layer(path: Address, signer: Address | None = None) -> tuple[FirstLayer, str]:
    """Read a first layer's file once: the layer, and who signed these very bytes, in words.

    Arguments and errors are those of `check_delivery`; nothing is parsed before the signature is checked.
    """
    signed, content = Path(f"{os.fspath(path)}{SUFFIX}"), _content(Path(path))
    if signed.exists():
        signature = Signature.parse(_content(signed, MAX_BYTES), str(signed))
        told = _checked(signature, content, FIRST_LAYER, signer)
    else:
        told = _unsigned(str(path), signer)
    return load_first_layer(_ReadFile(LocalStore(Path(path).parent), str(path), content)), told


@dataclass(frozen=True)
class _ReadFile(StoredFile):
    """A file that was read already: whoever opens it gets the same bytes, whatever lies there now."""

    content: bytes

    def open(self, mode: str) -> IO[bytes]:
        return io.BytesIO(self.content)

    def __str__(self) -> str:
        return self.name


def _checked(signature: Signature, content: bytes, namespace: str, signer: Address | None) -> str:
    signature.check(content, namespace)
    if signer is not None and not any(
        one.public == signature.public and one.may_sign(namespace) for one in read_signers(signer)
    ):
        raise FileError(
            f"{signature.name} was made by {signature.fingerprint}, which is not the key you expect"
        )
    return f"signed by {signature.fingerprint}"


def _unsigned(name: str, signer: Address | None) -> str:
    if signer is not None:
        raise DeliveryError(f"{name} is not signed: ask its sender to sign it")
    return NOT_SIGNED


def _content(path: Path, at_most: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(at_most)
    except (OSError, ValueError) as error:
        raise LayerFileError(f"{path} cannot be read: {reason_of(error)}") from None
