"""Everything secret, derived from one 32-byte seed.

    seed --HKDF-SHA256(info)--> 32-byte sub-key --ChaCha20--> stream of 64-bit words

`info` names the purpose and all parameters of the key, so that no two uses share a stream. The stream
is specified word by word in docs/format.md: the same seed must give the same core and the same channel
order on every machine and in every later version.
"""

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SEED_BYTES = 32
NONCE = bytes(16)  # every sub-key is used for one stream only
PAIRS_AT_ONCE = 1 << 18


def derive_bytes(seed: bytes, info: str, length: int = 32) -> bytes:
    """HKDF-SHA256 without salt.

    >>> derive_bytes(bytes(32), "example", 4).hex()
    '239a04fe'
    """
    kdf = HKDF(algorithm=SHA256(), length=length, salt=None, info=info.encode())
    return kdf.derive(seed)


class WordStream:
    """ChaCha20's key stream as little-endian 64-bit words."""

    def __init__(self, seed: bytes, info: str) -> None:
        cipher = Cipher(algorithms.ChaCha20(derive_bytes(seed, info), NONCE), mode=None)
        self._encryptor = cipher.encryptor()

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """The next `count` words."""
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype="<u8")


def normal_matrix(seed: bytes, info: str, size: int) -> npt.NDArray[np.float64]:
    """A (size, size) matrix of independent standard normal numbers, filled row by row.

    Box and Muller's method on pairs of words (v, w), of which the upper 53 bits are used:
    r = sqrt(-2 ln((v + 1) / 2^53)), t = 2 pi w / 2^53, and the pair gives r cos t, r sin t.
    """
    stream = WordStream(seed, info)
    pairs = (size * size + 1) // 2
    numbers = np.empty((pairs, 2))
    for start in range(0, pairs, PAIRS_AT_ONCE):
        part = numbers[start : start + PAIRS_AT_ONCE]
        words = (stream.take(2 * len(part)) >> np.uint64(11)).astype(np.float64).reshape(-1, 2)
        radius = np.sqrt(-2.0 * np.log((words[:, 0] + 1.0) * 2.0**-53))
        angle = words[:, 1] * (2.0 * np.pi * 2.0**-53)
        part[:, 0] = radius * np.cos(angle)
        part[:, 1] = radius * np.sin(angle)
    return numbers.reshape(-1)[: size * size].reshape(size, size)


def permutation(seed: bytes, info: str, length: int) -> npt.NDArray[np.intp]:
    """A random order of `length` things: the positions of `length` words, sorted by the words.

    >>> sorted(permutation(bytes(32), "example", 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return np.argsort(WordStream(seed, info).take(length), kind="stable")
