"""What a server says, checked: of its network, and in answer to a request."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mole.errors import ServerError
from mole.exchange.inference_messages import Message
from mole.exchange.served_model import DATATYPE, FORMAT, INPUT, OUTPUT, Images, ServedFacts
from mole.foreign_text import shown
from mole.limits import MAX_CLASSES
from mole.protection.front_file import Front
from mole.provider.channels import ModelMetadata
from mole.provider.keys import MorphKey
from mole.scheme.first_layer import FirstLayer
from mole.storage.typed_json import FormatError

SLACK = 1e-3  # by which probabilities may miss a sum of one


@dataclass(frozen=True, eq=False)
class Answers:
    """What a network says of images.

    Attributes:
        classes: the most likely class of each, (n,).
        probabilities: of every class, (n, classes).
        class_names: what the server calls the classes; None where it does not say.
    """

    classes: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float32]
    class_names: tuple[str, ...] | None

    @property
    def names(self) -> list[str]:
        """The name of each image's class, or its number where classes have no names."""
        names = self.class_names
        return [str(one) if names is None else names[one] for one in self.classes.tolist()]


@dataclass(frozen=True)
class Served:
    """A network on a server that goes with the provider's key.

    Attributes:
        classes: how many it tells apart; None where the server does not say.
        class_names: what it calls them.
        checks_key: whether the server knows of keys, and refuses data of another one.
    """

    classes: int | None
    class_names: tuple[str, ...] | None
    checks_key: bool

    @classmethod
    def of(
        cls,
        said: ModelMetadata,
        key: MorphKey,
        layer: FirstLayer | None,
        front: Front | None,
        clip: float | None,
    ) -> "Served":
        """Compare what a server says with the provider's own files.

        Args:
            said: the server's words.
            key: what morphs.
            layer: what for.
            front: what makes features of images, for protected requests.
            clip: the length that these are clipped to.

        Raises:
            ServerError: if its network is for another key, layer or front, or is no such network.
        """
        _check_input(said, key)
        if FORMAT not in said.properties:  # another implementation: it runs the file, and knows no more
            shapes = [shape for name, _, shape in said.outputs if name == OUTPUT and len(shape) == 2]
            known = shapes[0][1] if shapes and 0 < shapes[0][1] <= MAX_CLASSES else None
            return cls(known, None, False)
        try:
            facts = ServedFacts.parse(said.properties[FORMAT])
        except FormatError as error:
            raise ServerError(f"what the server says of its network cannot be read: {error}") from None
        if facts.key_fingerprint != key.fingerprint:
            key_of_theirs = facts.key_fingerprint
            theirs = "plain data" if key_of_theirs is None else f"data of key {key_of_theirs}"
            raise ServerError(
                f"the server's network takes {theirs}, and this key is {key.fingerprint}: give the key of "
                "the data that it was trained on"
            )
        if facts.images is not None:
            _check_images(facts.images, layer, front, clip)
        return cls(facts.classes, facts.class_names, True)

    def answers(self, found: Sequence[npt.NDArray[np.float32]]) -> Answers:
        """Answers to several requests as one."""
        width = self.classes or (found[0].shape[1] if found else 0)
        every = np.concatenate([np.empty((0, width), np.float32), *found])
        classes = every.argmax(axis=1) if width else np.empty(0, np.int64)
        return Answers(np.asarray(classes, np.int64), every, self.class_names)


def probabilities_in(answer: Message, id: str, rows: int, served: Served) -> npt.NDArray[np.float32]:
    """The probabilities in an answer to a request, (rows, classes).

    Raises:
        ServerError: if it is the answer to another request, or holds something else.
    """
    if answer.id != id:
        raise ServerError("the server answered another request than this: ask its developer")
    try:
        found = answer.tensor(OUTPUT).floats()
    except FormatError as error:
        raise ServerError(f"the server's answer cannot be read: {error}") from None
    if found.ndim != 2 or len(found) != rows or served.classes not in (None, found.shape[1]):
        raise ServerError(
            f"the server's answer has shape {found.shape}, for {rows} rows: ask its developer"
        )
    if not np.allclose(found.sum(axis=1), 1, atol=SLACK) or found.min(initial=0) < 0:
        raise ServerError("the server's answers are no probabilities: ask its developer")
    return found


def _check_input(said: ModelMetadata, key: MorphKey) -> None:
    """Refuse a network that takes something else; a server that does not say is believed later."""
    wanted = (INPUT, DATATYPE, key.input_shape)
    found = [(name, datatype, shape[1:]) for name, datatype, shape in said.inputs]
    if found and found != [wanted]:
        name, datatype, shape = found[0]
        raise ServerError(
            f"the server's network takes {shown(name)}, {shown(datatype)} of {shown(shape)}, and this key "
            f"morphs {INPUT}, {DATATYPE} of {key.input_shape}: ask for the network of its data"
        )


def _check_images(
    theirs: Images, layer: FirstLayer | None, front: Front | None, clip: float | None
) -> None:
    """Refuse a network whose images were made otherwise; what the provider does is its own files' say."""
    if theirs.front is not None and (front is None or theirs.front != front.digest):
        raise ServerError(
            "the server's network was trained on protected features: give protect with the front of that "
            "delivery"
        )
    if theirs.front is None and front is not None:
        raise ServerError("the server's network was trained on images, not on features: leave out protect")
    if front is not None and theirs.clip not in (None, clip):
        raise ServerError(
            f"the server's network was trained on features clipped to a length of {theirs.clip}, and those "
            f"of requests are clipped to {clip}",
            advice={"clip": None},
        )
    said = theirs.layer_fingerprint
    if layer is not None and said is not None and said != layer.fingerprint:
        raise ServerError(
            f"the server's network was trained for first layer {shown(said)}, and this is "
            f"{layer.fingerprint}: give the layer of that delivery"
        )
    if layer is None and theirs.normalisation is not None:
        raise ServerError(
            "the server's network takes normalised images, and the first layer says how",
            advice={"layer": None},
        )
