"""Everything secret, derived from one 32-byte seed.

    seed --HKDF-SHA256(info)--> 32-byte sub-key --ChaCha20--> stream of 64-bit words

`info` names the purpose and all parameters of the key, so that no two uses share a stream. The stream is
specified word by word in docs/format.md: the same seed must give the same core and the same channel order
on every machine and in every later version.
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
    """ChaCha20's key stream as little-endian 64-bit words, and what is drawn with them.

    >>> stream = WordStream(bytes(32), "example")
    >>> sorted(stream.order(5).tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(self, seed: bytes, info: str) -> None:
        cipher = Cipher(algorithms.ChaCha20(derive_bytes(seed, info), NONCE), mode=None)
        self._encryptor = cipher.encryptor()

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """The next `count` words."""
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype="<u8")

    def below(self, limit: int, count: int) -> list[int]:
        """Whole numbers from 0 up to `limit`, without it: a word each, modulo the limit."""
        return [word % limit for word in self.take(count).tolist()]

    def order(self, length: int) -> npt.NDArray[np.intp]:
        """A random order of `length` things: the positions of `length` words, sorted by the words."""
        return np.argsort(self.take(length), kind="stable")

    def normals(self, count: int) -> npt.NDArray[np.float64]:
        """Independent standard normal numbers.

        Box and Muller's method on pairs of words (v, w), of which the upper 53 bits are used:
        r = sqrt(-2 ln((v + 1) / 2^53)), t = 2 pi w / 2^53, and the pair gives r cos t, r sin t.
        """
        numbers = np.empty(((count + 1) // 2, 2))
        for start in range(0, len(numbers), PAIRS_AT_ONCE):
            part = numbers[start : start + PAIRS_AT_ONCE]
            words = (self.take(2 * len(part)) >> np.uint64(11)).astype(np.float64).reshape(-1, 2)
            radius = np.sqrt(-2.0 * np.log((words[:, 0] + 1.0) * 2.0**-53))
            angle = words[:, 1] * (2.0 * np.pi * 2.0**-53)
            part[:, 0] = radius * np.cos(angle)
            part[:, 1] = radius * np.sin(angle)
        return numbers.reshape(-1)[:count]
