"""Who made it: signatures of a delivery, over its manifest, and of a first layer, over its file.

The manifest has the digest of every other file of a delivery, so one signature speaks for all of them. It
lies beside what it signs, under that name and `.sig`; in a sealed delivery it is sealed as well.
"""

import os
from pathlib import Path

from mole.errors import DeliveryError, FileError, LayerFileError
from mole.exchange.manifest import NAME as MANIFEST
from mole.storage.atomic import new_file, reason_of
from mole.storage.signers import read_signers
from mole.storage.signing import Signature, SigningKey
from mole.storage.stores import Store

SUFFIX = ".sig"
SIGNATURE = MANIFEST + SUFFIX
DELIVERY, FIRST_LAYER = "mole-delivery", "mole-first-layer"
NOT_SIGNED = "not signed"
MAX_BYTES = 1 << 12
Address = str | os.PathLike[str]


def sign_delivery(store: Store, key: SigningKey) -> None:
    """Sign a finished delivery; a signature that is there is replaced."""
    store.write(SIGNATURE, key.sign(store.read(MANIFEST), DELIVERY).encode())


def check_delivery(store: Store, signer: Address | None = None) -> str:
    """Who signed a delivery, in words.

    Args:
        store: where it lies.
        signer: whose signature is wanted: a public key, its file, or a file of allowed signers. Without
            one any signature will do, and none.

    Raises:
        FileError: if the signature is not of this delivery, or is not the signer's.
    """
    if SIGNATURE not in store.names():
        return _unsigned(store.label, signer)
    name = f"{store.label}/{SIGNATURE}"
    with store.open(SIGNATURE) as file:
        signature = Signature.parse(file.read(MAX_BYTES), name)
    return _checked(signature, store.read(MANIFEST), DELIVERY, signer)


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


def check_layer(path: Address, signer: Address | None = None) -> str:
    """Who signed a first layer's file, in words; arguments and errors as of `check_delivery`."""
    signed = Path(f"{os.fspath(path)}{SUFFIX}")
    if not signed.exists():
        return _unsigned(str(path), signer)
    signature = Signature.parse(_content(signed, MAX_BYTES), str(signed))
    return _checked(signature, _content(Path(path)), FIRST_LAYER, signer)


def _checked(signature: Signature, content: bytes, namespace: str, signer: Address | None) -> str:
    signature.check(content, namespace)
    if signer is not None and not any(
        one.public == signature.public and one.may_sign(namespace) for one in read_signers(signer)
    ):
        raise FileError(
            f"{signature.name} was made by {signature.fingerprint}, who is not the signer you expect"
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
