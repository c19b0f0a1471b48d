"""A sealed store: every file of another store is an age file, encrypted for its recipients.

    store = SealedStore(open_store("delivery"), recipients=["age1..."], identities=["AGE-SECRET-KEY-1..."])
    store.write("manifest.json", b"{}")                      # delivery/manifest.json.age

Clear content is in memory only: this program writes none of it to a disk, not even for a moment. (The
operating system may swap memory out: encrypt the swap.) Who has no identity sees the names of the files,
their sizes and their number.
"""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

import pyrage

from mole.errors import DeliveryError
from mole.storage.age_keys import listed_ones, parse_identities, parse_recipient
from mole.storage.age_stream import Header, PieceReader, damaged, encrypt_stream
from mole.storage.atomic import reason_of
from mole.storage.identities import x25519_secrets
from mole.storage.stores import Store

SUFFIX = ".age"
NOBODY, BROKEN = "No matching keys found", "decryption error"  # what pyrage says


class ForAnotherError(DeliveryError):
    """A file that none of the identities opens."""


class SealedStore:
    """Files that lie encrypted in another store, each under its name and `.age`.

    Attributes:
        label: the other store's.
        inner: the other store.
        identities: the texts of what opens its files.
    """

    def __init__(self, inner: Store, *, identities: Sequence[str], recipients: Sequence[str] = ()) -> None:
        """Wrap a store.

        Args:
            inner: where the encrypted files lie.
            identities: texts of age identities or SSH keys. To write, one of them is a recipient's.
            recipients: who shall be able to read what is written; none for a store that is only read.
        """
        self.label, self.inner = inner.label, inner
        self.identities = tuple(listed_ones(identities, "identities"))
        self._recipients = [parse_recipient(text) for text in listed_ones(recipients, "recipients")]

    def names(self) -> set[str]:
        """Names of all finished files; one that is not sealed does not hide behind a sealed one."""
        names = self.inner.names()
        sealed = {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}
        others = {name for name in names if not name.endswith(SUFFIX)}
        if sealed & others:
            name = min(sealed & others)
            raise DeliveryError(
                f"{self.label} holds both {name} and {name}{SUFFIX}: get the delivery again"
            )
        return sealed | others

    def read(self, name: str) -> bytes:
        """A file's clear bytes."""
        try:
            with self.open(name) as file:
                return file.read()
        except OSError as error:
            raise _unreadable(f"{self.label}/{name}{SUFFIX}", error) from None

    def open(self, name: str) -> IO[bytes]:
        """A file's clear content, opened for reading; what is read is decrypted then."""
        sealed, label = self.inner.open(name + SUFFIX), f"{self.label}/{name}{SUFFIX}"
        try:
            header = Header.read(sealed, label)
            file_key = header.file_key(self._secrets)
            if file_key is None:
                return self._opened_whole(sealed, label)
            return io.BufferedReader(PieceReader(sealed, header, file_key, label))
        except BaseException:
            sealed.close()
            raise

    def write(self, name: str, content: bytes) -> None:
        """A new file, complete or not at all."""
        self._seal(name, lambda: io.BytesIO(content))

    def make(self, name: str, write: Callable[[Path], None]) -> None:
        """A new file that a function writes to a path, complete or not at all; the path is in memory."""
        with _memory_file(self.label) as path:
            write(path)
            self._seal(name, lambda: path.open("rb"))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        self.inner.remove(name + SUFFIX)

    def locked(self) -> AbstractContextManager[None]:
        """Be the only one to write there for a while; an error says who is at work."""
        return self.inner.locked()

    @cached_property
    def _secrets(self) -> list[bytes]:
        return x25519_secrets(self.identities)

    def _seal(self, name: str, opened: Callable[[], IO[bytes]]) -> None:
        if not self._secrets:
            raise DeliveryError(f"{self.label} cannot be sealed with SSH keys alone: add an age identity")

        def write(path: Path) -> None:
            with opened() as clear, path.open("wb") as out:
                encrypt_stream(clear, out, self._recipients, self._secrets[0])

        self.inner.make(name + SUFFIX, write)

    def _opened_whole(self, sealed: IO[bytes], label: str) -> IO[bytes]:
        """The content of a file that only an SSH key may open: pyrage does that, all at once."""
        keys = [
            key for text in self.identities if "PRIVATE KEY-----" in text for key in parse_identities(text)
        ]
        clear = io.BytesIO()
        try:
            with sealed:
                sealed.seek(0)
                pyrage.decrypt_io(sealed, clear, keys)
        except OSError as error:  # also what pyrage says of a damaged piece
            raise damaged(label) if str(error) == BROKEN else _unreadable(label, error) from None
        except pyrage.DecryptError as error:
            if keys and str(error) != NOBODY:
                raise damaged(label) from None
            raise ForAnotherError(
                f"{label} is sealed for somebody else: use the identity that matches its recipient"
            ) from None
        clear.seek(0)
        return clear


def is_sealed(names: set[str]) -> bool:
    """Whether a store with files of these names is a sealed one."""
    return any(name.endswith(SUFFIX) for name in names)


def _unreadable(label: str, error: OSError) -> DeliveryError:
    return DeliveryError(f"{label} cannot be read: {reason_of(error)}")


@contextmanager
def _memory_file(label: str) -> Iterator[Path]:
    """A path to a file that lies in memory and has no name in any folder."""
    if not hasattr(os, "memfd_create"):
        raise DeliveryError(f"{label} cannot be sealed on this system: files in memory need Linux")
    descriptor = os.memfd_create("sealed")
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
