"""Large age files: what this program writes, age's own library opens, and the other way round."""

import io
import os
import random
from itertools import pairwise

import pyrage
import pytest

from mole.errors import DeliveryError
from mole.storage.age_stream import PIECE, TAG, Header, PieceReader, encrypt_stream
from mole.storage.identities import identity_texts, recipient_texts, x25519_identity, x25519_secrets
from secrets_kept import DEVELOPER, RECIPIENT, STRANGER

SECRETS = x25519_secrets([str(DEVELOPER)])
SIZES = (0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7)

DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def encrypted(content: bytes) -> bytes:
    out = io.BytesIO()
    encrypt_stream(io.BytesIO(content), out, [DEVELOPER.to_public(), STRANGER.to_public()], SECRETS[0])
    return out.getvalue()


def opened(content: bytes) -> PieceReader:
    file = io.BytesIO(content)
    header = Header.read(file, "a file")
    return PieceReader(file, header, header.file_key(SECRETS), "a file")


@pytest.mark.parametrize("size", SIZES)
def test_age_and_this_program_read_each_other(size):
    content = os.urandom(size)
    assert pyrage.decrypt(encrypted(content), [DEVELOPER]) == content
    assert pyrage.decrypt(encrypted(content), [STRANGER]) == content
    assert opened(encrypted(content)).readall() == content
    assert opened(pyrage.encrypt(content, [DEVELOPER.to_public()])).readall() == content


def test_the_same_content_never_looks_the_same():
    assert encrypted(b"content")[-30:] != encrypted(b"content")[-30:]


def test_a_file_is_read_from_any_place_in_it():
    content = os.urandom(3 * PIECE + 7)
    ours, oracle = io.BufferedReader(opened(encrypted(content))), io.BytesIO(content)
    rng = random.Random(0)
    for _ in range(200):
        offset, whence = rng.choice(
            [(rng.randrange(len(content) + 9), 0), (-rng.randrange(len(content)), 2)]
        )
        length = rng.choice([0, 1, 100, PIECE, 2 * PIECE])
        assert ours.seek(offset, whence) == oracle.seek(offset, whence)
        assert ours.read(length) == oracle.read(length)
        assert ours.tell() == oracle.tell()


def test_a_flipped_bit_is_found_wherever_it_is():
    content = os.urandom(PIECE + 7)
    whole = encrypted(content)
    header = Header.read(io.BytesIO(whole), "a file").length
    rng = random.Random(0)
    places = [*range(22, header), *(rng.randrange(header, len(whole)) for _ in range(100)), len(whole) - 1]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.randrange(8)
        with pytest.raises((DeliveryError, TypeError)):  # no file key: as good as sealed for another
            opened(bytes(changed)).readall()


@pytest.mark.parametrize("bit", [0, 1])
def test_the_spare_bits_of_a_header_s_digest_are_looked_at_too(bit):
    """43 digits of base64 have two bits more than 32 bytes."""
    whole = encrypted(b"content")
    last = Header.read(io.BytesIO(whole), "a file").length - 2
    digit = DIGITS.index(whole[last])
    assert digit % 4 == 0
    changed = bytearray(whole)
    changed[last] = DIGITS[digit + (1 << bit)]
    with pytest.raises(DeliveryError, match="damaged"):
        opened(bytes(changed)).readall()


@pytest.mark.parametrize(
    "change",
    [
        lambda head, pieces: head + pieces[0],
        lambda head, pieces: head + pieces[0] + pieces[1],
        lambda head, pieces: head + pieces[0] + pieces[2],
        lambda head, pieces: head + pieces[1] + pieces[0] + pieces[2],
        lambda head, pieces: head + b"".join(pieces) + b"x",
        lambda head, pieces: head + b"".join(pieces) + pieces[2],
        lambda head, pieces: head,
        lambda head, pieces: head[:-8],
        lambda head, pieces: head[:100],
        lambda head, pieces: b"",
    ],
)
def test_pieces_cannot_be_left_out_added_or_exchanged(change):
    content = os.urandom(2 * PIECE + 7)
    whole = encrypted(content)
    start = Header.read(io.BytesIO(whole), "a file").length + 16
    cuts = [start, start + PIECE + TAG, start + 2 * (PIECE + TAG), len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(cuts)]
    assert opened(whole[:start] + b"".join(pieces)).readall() == content
    with pytest.raises(DeliveryError, match="damaged"):
        opened(change(whole[:start], pieces)).readall()


def test_only_an_empty_file_has_an_empty_piece():
    """As age demands it: otherwise the same content could be written in two ways."""

    class Stops(io.BytesIO):
        """Says that something follows, and then that it is nothing."""

        def read(self, size=-1):
            return super().read(size) or self.ends.pop()

    nothing = type("Nothing", (bytes,), {"__bool__": lambda self: True})()
    clear, out = Stops(bytes(PIECE)), io.BytesIO()
    clear.ends = [b"", nothing]
    encrypt_stream(clear, out, [DEVELOPER.to_public()], SECRETS[0])
    with pytest.raises(pyrage.DecryptError):
        pyrage.decrypt(out.getvalue(), [DEVELOPER])
    with pytest.raises(DeliveryError, match="damaged"):
        opened(out.getvalue())


def test_a_secret_is_written_as_age_writes_it():
    for identity in (DEVELOPER, STRANGER):
        (secret,) = x25519_secrets([f"# a comment\n\n{identity}\n"])
        assert x25519_identity(secret) == str(identity)
        assert str(pyrage.x25519.Identity.from_str(x25519_identity(secret)).to_public()) == str(
            identity.to_public()
        )


def test_identities_are_paths_or_texts(tmp_path):
    file = tmp_path / "identity.txt"
    file.write_text(f"# made today\n{DEVELOPER}\n")
    assert identity_texts(None) == ()
    assert x25519_secrets(identity_texts(file)) == x25519_secrets(identity_texts(str(DEVELOPER))) == SECRETS
    assert len(x25519_secrets(identity_texts([file, str(STRANGER)]))) == 2


def test_recipients_are_put_in_order():
    other = str(STRANGER.to_public())
    assert recipient_texts([RECIPIENT, other]) == recipient_texts([other, RECIPIENT, f" {other}\n"])


def test_a_look_at_the_end_decrypts_no_more_than_that():
    content = os.urandom(20 * PIECE)
    whole = encrypted(content)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    reader = io.BufferedReader(opened(bytes(damaged)))
    reader.seek(-100, os.SEEK_END)
    assert reader.read() == content[-100:]
    reader.seek(0)
    with pytest.raises(DeliveryError, match="damaged"):
        reader.read()
