"""What a server takes: rows of the right name, shape, type and key, or a refusal that says what to do.

A refusal has a kind, which HTTP and gRPC each have a number for. Any other error is the server's own fault.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mole.errors import MoleError
from mole.exchange.inference_messages import KEY_PARAMETER, Message
from mole.exchange.served_model import DATATYPE, INPUT, OUTPUT, ServedFacts
from mole.foreign_text import listed, shown
from mole.limits import MAX_REQUEST_ROWS, most_in_a_request
from mole.scheme.shapes import element_count
from mole.storage.typed_json import FormatError

Kind = Literal["invalid", "token", "unknown", "large", "slow", "busy"]
MODEL_VERSION = "1"


class RefusedError(MoleError):
    """A request that is not answered, and why."""

    def __init__(self, kind: Kind, message: str) -> None:
        self.kind: Kind = kind
        super().__init__(message)


@dataclass(frozen=True)
class Expected:
    """What one network takes.

    Attributes:
        name: what it is called in requests.
        facts: what its file says.
    """

    name: str
    facts: ServedFacts

    @property
    def most_bytes(self) -> int:
        """Of a request."""
        return most_in_a_request(element_count(self.facts.input_shape))

    def check_name(self, name: str, version: str = "") -> None:
        """Refuse a request to another network.

        Raises:
            RefusedError: if it is one.
        """
        if name != self.name:
            raise RefusedError(
                "unknown", f"there is no network '{shown(name)}' here: ask for '{self.name}'"
            )
        if version not in ("", MODEL_VERSION):
            raise RefusedError(
                "unknown",
                f"'{self.name}' has no version '{shown(version)}': ask for {MODEL_VERSION}, or none",
            )

    def rows(self, message: Message) -> npt.NDArray[np.float32]:
        """The morphed samples of a request, (n, *input_shape).

        Raises:
            RefusedError: if they are not what the network takes.
        """
        self._check_key(message)
        if [tensor.name for tensor in message.tensors] != [INPUT]:
            names = listed([tensor.name for tensor in message.tensors]) or "none"
            raise _invalid(f"the inputs are {names}: send one, called '{INPUT}'")
        if not set(message.wanted) <= {OUTPUT}:
            raise _invalid(f"the outputs asked for are {listed(message.wanted)}: ask for '{OUTPUT}'")
        (tensor,) = message.tensors
        if tensor.datatype != DATATYPE:
            raise _invalid(f"'{INPUT}' is {shown(tensor.datatype)}: send {DATATYPE}")
        wanted = ", ".join(map(str, self.facts.input_shape))
        if tensor.shape[1:] != self.facts.input_shape:
            raise _invalid(f"'{INPUT}' has shape {list(tensor.shape)}: send (rows, {wanted}), morphed")
        if not 1 <= tensor.shape[0] <= MAX_REQUEST_ROWS:
            raise _invalid(f"'{INPUT}' has {tensor.shape[0]} rows: send 1 to {MAX_REQUEST_ROWS} at a time")
        try:
            rows = tensor.floats()
        except FormatError as error:
            raise _invalid(f"{error}: send as many numbers as its shape says") from None
        if not np.isfinite(rows).all():
            raise _invalid(f"'{INPUT}' has a NaN or an infinity: send finite numbers")
        return rows

    def _check_key(self, message: Message) -> None:
        said, ours = message.parameters.get(KEY_PARAMETER), self.facts.key_fingerprint
        if said is not None and said != ours:
            key = "plain data" if ours is None else f"data of key {ours}"
            raise _invalid(
                f"the request was morphed with key {shown(said)} and this network takes {key}: use that "
                "key, or ask the developer for a network that was trained with yours"
            )


def check_answers(probabilities: npt.NDArray[np.float32], rows: int, facts: ServedFacts) -> None:
    """See that a network gave what it said.

    Raises:
        RefusedError: if its input was so large that it gave no numbers.
    """
    if probabilities.shape != (rows, facts.classes) or not np.isfinite(probabilities).all():
        raise _invalid(
            f"the network gives no probabilities for these numbers: send '{INPUT}' as it is made"
        )


def _invalid(message: str) -> RefusedError:
    return RefusedError("invalid", message)
