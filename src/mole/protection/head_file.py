"""A head for use at home: a linear classifier of plain features, as an ONNX file.

The provider makes it from what the developer trained, and runs it after the front on its own images: no
key, no noise, no PyTorch. Any ONNX runtime can run it, on features that are clipped as those of the
delivery were.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import FileError
from mole.foreign_text import shown
from mole.limits import MAX_CLASSES
from mole.protection.calibration import EVEN
from mole.protection.front_file import MAX_FEATURES_OF_A_FRONT, Front
from mole.protection.head import Head
from mole.protection.onnx_file import facts_in, onnx_package, read_model
from mole.scheme.shapes import Array
from mole.storage.atomic import new_file, reason_of
from mole.storage.typed_json import Fields, FormatError

FORMAT, VERSION = "mole-head", 1
MAX_HEAD_BYTES = 1 << 28  # two thousand features of 30,000 classes
OPERATORS = ["Gemm", "Softmax"]


@dataclass(frozen=True, eq=False)
class HomeHead:
    """A head with what it takes to use it.

    Attributes:
        head: weights and intercepts on plain features.
        front: SHA-256 of the front that makes these features.
        clip: the length that features are clipped to, as in the delivery.
        class_names: names of the classes, if they are known.
        mode, resize: how images became the front's input in the delivery.
        threshold: of two classes, the probability from which the second is the answer.
    """

    head: Head
    front: str
    clip: float
    class_names: tuple[str, ...] | None = None
    mode: str | None = None
    resize: str | None = None
    threshold: float = EVEN

    def answers(self, probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The class of each row, from its probabilities, (n, classes)."""
        if probabilities.shape[1] == 2:
            return np.asarray(probabilities[:, 1] >= self.threshold, np.int64)
        return np.asarray(probabilities.argmax(axis=1), np.int64)

    def check_front(self, front: Front, path: Path) -> None:
        """Refuse another front than the one that it was learned with.

        Raises:
            FileError: with both names.
        """
        if front.digest != self.front:
            raise FileError(
                f"{path} was learned from features of another front than {front.path}: give the front of "
                "the delivery that it was trained on"
            )


def write_head(path: Path, home: HomeHead) -> None:
    """Write a head; a file of that name is replaced when all is written.

    Raises:
        MissingExtraError: without ONNX.
        FileError: if it cannot be written.
    """
    onnx = onnx_package("head")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    classes, features = home.head.weight.shape
    arrays = {"weight": home.head.weight, "intercept": home.head.intercept}
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["features", *arrays], ["scores"], transB=1),
            helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
        ],
        "head",
        [helper.make_tensor_value_info("features", float32, ["batch", features])],
        [helper.make_tensor_value_info("probabilities", float32, ["batch", classes])],
        [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9, producer_name="mole"
    )
    helper.set_model_props(model, {FORMAT: json.dumps(_fields(home))})
    try:
        with new_file(path) as file:
            file.write_bytes(model.SerializeToString())
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None


def read_head(path: Path) -> HomeHead:
    """Read a head, checked.

    Raises:
        FileError: if it is no head, or not as `write_head` writes it.
    """
    model, _ = read_model(path, "head", MAX_HEAD_BYTES)
    try:
        fields = facts_in(model, FORMAT, VERSION)
        if fields is None:
            raise FormatError("its metadata does not say so (`mole export-head` writes that)")
        return _parsed(fields, model)
    except FormatError as error:
        raise FileError(f"{path} is an ONNX file, but not a head: {error}") from None


def is_head(path: Path) -> bool:
    """Whether an ONNX file says that it is a head."""
    model, _ = read_model(path, "front", MAX_HEAD_BYTES) if _size(path) <= MAX_HEAD_BYTES else (None, "")
    return model is not None and any(entry.key == FORMAT for entry in model.metadata_props)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # reading it says why


def _fields(home: HomeHead) -> dict[str, Any]:
    names = {} if home.class_names is None else {"class_names": home.class_names}
    image = {"mode": home.mode, "resize": home.resize}
    return {
        "version": VERSION, "front": home.front, "clip": home.clip, "threshold": home.threshold, **names,
        **image,
    }  # fmt: skip


def _parsed(fields: Fields, model: Any) -> HomeHead:
    if [node.op_type for node in model.graph.node] != OPERATORS:
        raise FormatError("it does more than a linear classifier")
    arrays = {one.name: _numbers(one) for one in model.graph.initializer}
    if set(arrays) != {"weight", "intercept"}:
        raise FormatError("it has other numbers than a weight and an intercept")
    head = checked_head(arrays["weight"], arrays["intercept"])
    names = fields.texts("class_names") if "class_names" in fields.names() else None
    if names is not None and len(names) != head.classes:
        raise FormatError(f"it has {len(names)} names of {head.classes} classes")
    clip = fields.number("clip")
    if clip <= 0:
        raise FormatError(f"its clip is {clip}")
    threshold = fields.number("threshold")
    if not 0 <= threshold <= 1:
        raise FormatError(f"its threshold is {threshold}")
    return HomeHead(
        head, fields.text("front"), clip, names,
        fields.optional("mode", fields.text), fields.optional("resize", fields.text),
        threshold,
    )  # fmt: skip


def _numbers(tensor: Any) -> Array:
    """The numbers of a tensor as `write_head` stores them: 32-bit floats, in one piece."""
    sides, content = tuple(tensor.dims), tensor.raw_data
    if tensor.data_type != 1 or min(sides, default=0) < 1 or len(content) != 4 * math.prod(sides):
        raise FormatError("its numbers are not stored as 32-bit floats")
    return np.frombuffer(content, "<f4").reshape(sides)


def checked_head(weight: Array, intercept: Array) -> Head:
    """A head from numbers that came out of a file.

    Raises:
        FormatError: if their shapes do not fit each other, are out of bounds, or they are not finite.
    """
    if weight.ndim != 2 or intercept.shape != weight.shape[:1]:
        raise FormatError(f"its weight {weight.shape} and intercept {intercept.shape} do not fit")
    classes, features = weight.shape
    if not 2 <= classes <= MAX_CLASSES or not 1 <= features <= MAX_FEATURES_OF_A_FRONT:
        raise FormatError(f"it tells {shown(classes)} classes apart by {shown(features)} features")
    if not np.isfinite(weight).all() or not np.isfinite(intercept).all():
        raise FormatError("its numbers have a NaN or an infinity")
    return Head(weight.astype(np.float64), intercept.astype(np.float64))
