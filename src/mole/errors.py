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
    │   │   └── ProblemsError  ... in several ways
    │   └── DeliveryError      ... of a delivery
    ├── ServerError            a server that cannot be reached, or refuses a request
    │   └── TryAgainError      ... and that may answer the same request later
    └── MissingExtraError      an optional part that is not installed

    MoleWarning                something that works, and should not go unnoticed
    └── PrivacyWarning         ... and that no wish for quiet may hide

A message says what was wrong, where, and what to do; it never shows a secret. Where a parameter would help,
the error carries it as `advice`: Python shows `resize="crop"`, and the command line `--resize crop`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Advice = Mapping[str, str | bool | tuple[str, ...] | None]
"""Parameters that would help, each with a value, several to choose from, or None for the user's own."""


class MoleError(Exception):
    """The root: catch this to catch everything that Morphed Learning raises on purpose.

    >>> print(MoleError("it is 28x28 and the layer takes 32x32", advice={"resize": ("crop", "stretch")}))
    it is 28x28 and the layer takes 32x32: give resize="crop" or resize="stretch"
    """

    def __init__(self, message: str = "", *, advice: Advice | None = None) -> None:
        """Take what was wrong, and what would help."""
        self.message = message
        self.advice = dict(advice or {})
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:  # whatever a subclass takes: other processes raise them here
        return _again, (type(self), self.args), self.__dict__

    def __str__(self) -> str:
        return with_advice(self.message, [_in_python(*hint) for hint in self.advice.items()])

    @property
    def sentence(self) -> str:
        """What it says as a sentence of its own.

        >>> MoleError("the data has no labels").sentence
        'The data has no labels.'
        """
        text = str(self).rstrip(".")
        return f"{text[:1].upper()}{text[1:]}."


def _again(cls: type[MoleError], arguments: tuple[Any, ...]) -> MoleError:
    return cls.__new__(cls, *arguments)


def with_advice(message: str, hints: Sequence[str]) -> str:
    """A message, and what to give.

    >>> with_advice("the key is encrypted", ["--identity"])
    'the key is encrypted: give --identity'
    """
    return f"{message}: give {' and '.join(hints)}" if hints else message


def _in_python(name: str, value: str | bool | tuple[str, ...] | None) -> str:
    if value is None:
        return f"{name}=..."
    if isinstance(value, bool):
        return f"{name}={value}"
    return " or ".join(f'{name}="{one}"' for one in ((value,) if isinstance(value, str) else value))


class MoleWarning(UserWarning):
    """Something that works, and that the user should know before going on."""


class PrivacyWarning(MoleWarning):
    """Something about people that may leave with the data; said even where remarks are not wanted."""


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
    """A file that cannot be read or written.

    Attributes:
        is_missing: whether that is because nothing is there.
    """

    is_missing = False


class KeyFileError(FileError):
    """A key file that cannot be read or written."""


class LayerFileError(FileError):
    """A layer file that cannot be read or written."""


class SourceError(FileError):
    """Data that cannot be read or used."""


class ProblemsError(SourceError):
    """Data in which several things are wrong; `problems` lists them, each with its own advice.

    >>> print(ProblemsError("2 images cannot be used", [MoleError("a.png is empty"), MoleError("...")]))
    2 images cannot be used:
    - a.png is empty
    - ...
    """

    def __init__(self, message: str, problems: Sequence[MoleError]) -> None:
        self.problems = tuple(problems)
        super().__init__(message)

    def __str__(self) -> str:
        return "\n- ".join([f"{self.message}:", *map(str, self.problems)])


class DeliveryError(FileError):
    """A delivery that cannot be made, read or trusted."""


class ServerError(MoleError):
    """A server that cannot be reached, or that refuses a request."""


class TryAgainError(ServerError):
    """A server that may answer the same request later: it is busy, starts, or has just died."""


class MissingExtraError(MoleError):
    """An optional dependency that is not installed; it names the extra that has it.

    >>> print(MissingExtraError("mole.torch needs PyTorch", "torch"))
    mole.torch needs PyTorch: in the project's folder, pip install '.[torch]'
    """

    def __init__(self, message: str, extra: str | None = None) -> None:
        hint = f": in the project's folder, pip install '.[{extra}]'" if extra else ""
        super().__init__(message + hint)
