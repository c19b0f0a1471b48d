"""Every error that Morphed Learning raises on purpose.

    MoleError
    ├── ParameterError         a value that cannot be used: kappa, core, dtype, ...
    ├── ShapeError             an array whose shape, dtype or values do not fit
    ├── UnsupportedLayerError  a first layer, or a model, that cannot be augmented
    ├── CoreError              a morphing matrix that is singular or badly conditioned
    ├── FileError              a file that is missing, damaged, foreign or too new
    │   ├── KeyFileError       ... of a key
    │   ├── LayerFileError     ... of a first or an augmented layer
    │   ├── SourceError        ... of the provider's data
    │   └── DeliveryError      ... of a delivery
    └── MissingExtraError      an optional part that is not installed

A message says what was wrong, where, and what to do; it never shows a secret.
"""

from collections.abc import Sequence


class MoleError(Exception):
    """The root: catch this to catch everything that Morphed Learning raises on purpose."""


class ParameterError(MoleError):
    """A parameter that cannot be used."""


class ShapeError(MoleError):
    """An array whose shape, dtype or values do not fit."""


class UnsupportedLayerError(MoleError):
    """A layer or model that cannot be augmented; `reasons` lists everything that stands in the way."""

    def __init__(self, what: str, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__(f"{what}: " + "; ".join(self.reasons))


class CoreError(MoleError):
    """A morphing matrix that cannot be inverted accurately."""


class FileError(MoleError):
    """A file that cannot be read or written."""


class KeyFileError(FileError):
    """A key file that cannot be read or written."""


class LayerFileError(FileError):
    """A layer file that cannot be read or written."""


class SourceError(FileError):
    """Data that cannot be read or used."""


class DeliveryError(FileError):
    """A delivery that cannot be made, read or trusted."""


class MissingExtraError(MoleError):
    """An optional dependency that is not installed."""
