"""MorphKey: the provider's secret, from which the core and the channel order follow; and what it does."""

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from mole.errors import CoreError, KeyFileError, ParameterError
from mole.progress import Progress, no_progress
from mole.provider.keys.derivation import SEED_BYTES, KeyParameters, WordStream, derive_bytes
from mole.provider.keys.key_file import (
    KeyTexts,
    read_key_text,
    read_whitening,
    refuse_second_file,
    save_texts,
    whitening_path,
    write_key_text,
    write_whitening,
)
from mole.provider.keys.learning import Learnt, how_learnt, learn_whitening
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.augmenting import build_augmented_layer
from mole.scheme.factored import LayerForm
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import ShuffledTilesLayout, TilesLayout
from mole.scheme.morphing import Core, Morphing, gaussian_core, orthogonal_core, whitened_core
from mole.scheme.shapes import Array, Shape, block_size, check_shape
from mole.scheme.whitening import Whitening
from mole.storage.age import decrypt, read_limited

MAX_DRAWS = 100
MAX_KEY_FILE_BYTES = 1 << 16


class MorphKey:
    """Everything needed to morph, unmorph and augment; to be kept secret.

    >>> key = MorphKey.generate((1, 4, 4), kappa=2, insecure_seed=bytes(32))  # for examples only
    >>> key
    MorphKey(input_shape=(1, 4, 4), kappa=2, core='orthogonal',
             fingerprint='dd666cbbc7cdd4545d21b8168832684a')
    >>> key.channel_order(4)
    array([3, 0, 2, 1])

    Attributes:
        parameters: what shape it morphs, and how; not secret.
        path: the file that it was loaded from or first saved to, beside which a ledger lies.
        progress: told how far the core is while it is made, at its first use.
    """

    def __init__(self, parameters: KeyParameters, seed: bytes, whitening: Whitening | None = None) -> None:
        self.parameters = parameters
        self._seed = seed
        self._whitening = whitening
        self.path: Path | None = None
        self.progress: Progress = no_progress

    @classmethod
    def generate(
        cls,
        input_shape: Shape,
        *,
        kappa: int = 1,
        tile: int | None = None,
        shuffle_tiles: bool = False,
        core: str = "orthogonal",
        sample: Array | None = None,
        insecure_seed: bytes | None = None,
        progress: Progress = no_progress,
    ) -> "MorphKey":
        """A new key from the operating system's randomness.

        Args:
            input_shape: shape of the samples, such as (3, 32, 32).
            kappa: how many times the core stands on the diagonal; 1 hides most and costs most.
            tile: side of square tiles as blocks, instead of kappa: for images too large for one core. They
                hide from the eye only. Where they do not fill a sample, the key is for one with zeros at
                the end of each axis, and `morph` adds them.
            shuffle_tiles: let tiles change places too, in one secret order: for patch embeddings of
                networks that learn where a patch stands from scratch.
            core: 'orthogonal', 'whitened' or 'gaussian'.
            sample: plain data, (n, *input_shape), from which a whitened core learns its statistics: what
                will be morphed, and public images of the same kind where those are few.
            insecure_seed: 32 known bytes, for tests and examples only.
            progress: told how far the core is.
        """
        shape = check_shape(input_shape)
        parameters = KeyParameters.of(shape, core, kappa=kappa, tile=tile, shuffled=shuffle_tiles)
        seed = secrets.token_bytes(SEED_BYTES) if insecure_seed is None else insecure_seed
        if not isinstance(seed, bytes) or len(seed) != SEED_BYTES:
            raise ParameterError(f"a seed is {SEED_BYTES} bytes")
        if insecure_seed is None:
            parameters.refuse_small_core()
        whitening = learn_whitening(parameters, seed, sample)
        if whitening is not None:
            parameters = replace(parameters, whitening=whitening.digest)
        for draw in range(MAX_DRAWS):
            key = cls(replace(parameters, draw=draw), seed, whitening)
            key.progress = progress
            try:
                _ = key.morphing.core.inverse  # derives the core, and checks it
            except CoreError:
                continue
            return key
        raise CoreError(f"no usable core in {MAX_DRAWS} draws: use core='orthogonal'")

    @property
    def input_shape(self) -> Shape:
        """Shape of the samples that this key morphs."""
        return self.parameters.input_shape

    @property
    def kappa(self) -> int:
        """How many times the core stands on the diagonal."""
        return self.parameters.kappa

    @property
    def tile(self) -> int | None:
        """Side of a tile, if blocks are tiles."""
        layout = self.parameters.to_layout()
        return layout.tile if isinstance(layout, TilesLayout) else None

    @property
    def core(self) -> str:
        """Which kind of core."""
        return self.parameters.core

    @property
    def learnt(self) -> Learnt | None:
        """How much a whitened core knows of the data; None for others, and keys from before version 0.6."""
        return how_learnt(self.parameters, self._whitening)

    @cached_property
    def fingerprint(self) -> str:
        """A public name for this key: 32 hexadecimal digits that say nothing about the seed."""
        return self.parameters.fingerprint(self._seed)

    @cached_property
    def morphing(self) -> Morphing:
        """The morphing itself, derived from the seed at first use (seconds for a large core)."""
        parameters, core = self.parameters, self._derive_core()
        return Morphing(parameters.to_layout(), core, self._tile_order())

    def _tile_order(self) -> npt.NDArray[np.intp] | None:
        """The secret order of shuffled tiles: the tile that comes to place p is order[p]."""
        is_shuffled = isinstance(self.parameters.to_layout(), ShuffledTilesLayout)
        return self.stream("tile-order").order(self.kappa) if is_shuffled else None

    def channel_order(self, channels: int) -> npt.NDArray[np.intp]:
        """The secret order of output channels: new channel c is old channel order[c]."""
        return self.stream(f"channel-order/{channels}").order(channels)

    def stream(self, purpose: str) -> WordStream:
        """Random words that only the holder of the key can draw again, others for each purpose."""
        return WordStream(self._seed, self.parameters.info(purpose))

    def mac(self, purpose: str, text: str) -> str:
        """A digest of a text that only the holder of the key can compute: 32 hexadecimal digits."""
        mac_key = derive_bytes(self._seed, self.parameters.info(purpose))
        return hmac.digest(mac_key, text.encode(), "sha256").hex()[:32]

    def to_texts(self) -> KeyTexts:
        """What the key's files hold, in clear: to be encrypted before it goes anywhere."""
        whitening = None if self._whitening is None else write_whitening(self._whitening)
        return KeyTexts(write_key_text(self.parameters, self._seed).encode(), whitening)

    def save(
        self,
        path: str | PathLike[str],
        passphrase: str | None = None,
        *,
        recipients: Sequence[str] = (),
    ) -> None:
        """Write the key as an age file that only its owner can read; never over an existing file.

        Args:
            path: where to; a whitened key writes a second file beside it, `<path>.whitening`.
            passphrase: what opens the file again; at least eight characters.
            recipients: age recipients (age1..., or SSH public keys) instead of a passphrase.
        """
        path = Path(path)
        save_texts(path, *self.to_texts(), passphrase=passphrase, recipients=recipients)
        self.path = self.path or path.absolute()

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        passphrase: str | Callable[[], str] | None = None,
        *,
        identities: Sequence[str] = (),
        progress: Progress = no_progress,
    ) -> "MorphKey":
        """Read a key that `save`, or the `age` program, encrypted.

        Args:
            path: the key file.
            passphrase: what it was saved with, or a function that is asked for it if it is needed.
            identities: texts of age identity files or SSH private keys, for a file with recipients.
            progress: told how far the core is, when it is made.
        """
        path = Path(path)
        refuse_second_file(path)
        if callable(passphrase):
            passphrase = cache(passphrase)  # asked once, also for two files

        def read(file: Path, limit: int) -> bytes:
            sealed = read_limited(file, limit)
            return decrypt(sealed, passphrase=passphrase, identities=identities, name=str(file))

        parameters, seed = read_key_text(read(path, MAX_KEY_FILE_BYTES), str(path))
        side = parameters.check()
        whitening = None
        if parameters.whitening is not None:
            beside = whitening_path(path)
            if not beside.exists():
                raise KeyFileError(
                    f"{beside} does not exist: without it the data cannot be recovered; restore it from "
                    "your backup"
                )
            content = read(beside, 6 * side * side + MAX_KEY_FILE_BYTES)  # armour adds a third
            whitening = read_whitening(content, digest=parameters.whitening, name=str(beside))
            if len(whitening.matrix) != side:
                raise KeyFileError(f"{beside} does not fit its key: its matrix has the wrong size")
        key = cls(parameters, seed, whitening)
        key.path, key.progress = path.absolute(), progress
        return key

    def _derive_core(self) -> Core:
        side = block_size(self.input_shape, self.kappa)
        normal = self.stream("core").normals(side * side).reshape(side, side)
        if self._whitening is not None:
            return whitened_core(normal, self._whitening, self.progress)
        return gaussian_core(normal) if self.core == "gaussian" else orthogonal_core(normal, self.progress)

    def __copy__(self) -> "MorphKey":
        return self

    def __deepcopy__(self, memo: object) -> "MorphKey":
        return self  # nothing secret in it can change

    def __reduce__(self) -> NoReturn:
        raise TypeError("a MorphKey is never pickled, because pickles lie in clear: use MorphKey.save")

    def __repr__(self) -> str:
        return (
            f"MorphKey(input_shape={self.input_shape}, kappa={self.kappa}, core={self.core!r}, "
            f"fingerprint={self.fingerprint!r})"
        )


def morph(images: Array, key: MorphKey) -> Array:
    """Morphed data from plain data, (b, *shape), in the same dtype, and in the shape of the key.

    That is the same shape, unless tiles do not fill it: then it has zeros at the end, which morphing hides.

    >>> import numpy as np
    >>> key = MorphKey.generate((1, 4, 4), insecure_seed=bytes(32))
    >>> images = np.ones((2, 1, 4, 4), dtype=np.float32)
    >>> bool(np.allclose(unmorph(morph(images, key), key), images, atol=1e-6))
    True
    """
    return key.morphing.morph(images)


def unmorph(morphed: Array, key: MorphKey) -> Array:
    """Plain data from morphed data: only the holder of the key can do this with certainty.

    Zeros that were added to fill tiles are still there: `images[:, :, :28, :28]` leaves them out.
    """
    return key.morphing.unmorph(morphed)


def augment(
    layer: FirstLayer, key: MorphKey, *, dtype: npt.DTypeLike = "float32", form: LayerForm | None = None
) -> AugmentedLayer:
    """The layer that gives the first layer's features on data morphed with this key.

    Its channels come in the key's secret order. `dtype` is how it is stored: 'float16' halves it. `form` is
    'dense' for the paper's matrix and 'factored' for two factors of it; None for what has fewer numbers.
    """
    if not isinstance(key, MorphKey):
        raise ParameterError(f"a {type(key).__name__} is not a key: call augment(layer, key)")
    if not isinstance(layer, FirstLayer):
        raise ParameterError(f"a {type(layer).__name__} cannot be augmented: give a first layer")
    order = key.channel_order(layer.channels)
    return build_augmented_layer(
        layer, key.morphing, order, key_fingerprint=key.fingerprint, dtype=dtype, form=form
    )
