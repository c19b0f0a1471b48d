"""Modules as ONNX: fronts, and networks to serve. Batches of any size, ONNX's own operators, one file."""

import logging
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from mole.errors import FileError, MissingExtraError, ParameterError
from mole.protection.onnx_file import onnx_package
from mole.scheme.shapes import Shape
from mole.storage.atomic import new_file, reason_of
from mole.torch.models import first_line

if TYPE_CHECKING:
    from onnx import ModelProto


def exporter(what: str) -> Any:
    """What writes ONNX files.

    Args:
        what: the word for what is to be written, such as 'front'.

    Raises:
        MissingExtraError: where it is not installed.
    """
    if find_spec("onnxscript") is None:  # PyTorch's exporter needs it
        raise MissingExtraError(f"a {what} is written as ONNX", "export")
    return onnx_package(what, "export")


def onnx_of(
    module: nn.Module, input_shape: Shape, what: str, *, names: tuple[str, str] | None = None
) -> "ModelProto":
    """A module that takes (b, *input_shape) as ONNX, for any b.

    Args:
        module: what to write.
        input_shape: of one sample.
        what: the word for it, such as 'front'.
        names: of its input and output; None for those that PyTorch gives.

    Raises:
        ParameterError: if PyTorch cannot write it.
        MissingExtraError: without ONNX.
    """
    onnx = exporter(what)
    example = torch.zeros(2, *input_shape)
    batches = ({0: torch.export.Dim("batch", min=1)},)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses a package that is not needed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        try:
            exported = torch.onnx.export(
                module.eval(), (example,), dynamo=True, dynamic_shapes=batches, verbose=False,
                input_names=names and names[:1], output_names=names and names[1:],
            )  # fmt: skip
        except Exception as error:  # the exporter fails in many ways on what it does not know
            raise ParameterError(
                f"PyTorch cannot write this network as ONNX: {first_line(error)}"
            ) from error
    if exported is None:
        raise ParameterError("PyTorch did not export this network")
    model: ModelProto = onnx.inliner.inline_local_functions(exported.model_proto)
    return model


def write_onnx(model: "ModelProto", metadata: Mapping[str, str], path: Path) -> None:
    """Write such a file, with what it says of itself; one of that name is replaced when all is written.

    Raises:
        FileError: if it cannot be written, or is larger than one ONNX file can be.
    """
    onnx_package("network", "export").helper.set_model_props(model, dict(metadata))
    try:
        content = model.SerializeToString()
    except Exception:  # of protobuf's, which cannot count further
        raise FileError(
            f"{path} would have more than 2 GB, which one ONNX file cannot hold: use tiles, or a layer in "
            "two factors"
        ) from None
    try:
        with new_file(path) as file:
            file.write_bytes(content)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None
