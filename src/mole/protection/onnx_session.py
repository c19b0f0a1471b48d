"""Runs checked ONNX files: the one place where onnxruntime is loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import FileError, MissingExtraError
from mole.scheme.shapes import Array


class OnnxSession:
    """A network of one input and one output, ready to run; several threads may call it at once.

    Attributes:
        input_name, output_name: what it calls them.
    """

    def __init__(self, content: bytes, *, threads: int = 1, name: str = "the file", extra: str = "front"):
        """Open a file that was checked (`mole.protection.onnx_file`).

        Args:
            content: its bytes.
            threads: how many compute one batch.
            name: what to call it in messages.
            extra: what to install where onnxruntime is missing.

        Raises:
            MissingExtraError: where it is.
            FileError: if onnxruntime does not take it.
        """
        try:
            import onnxruntime  # noqa: PLC0415  (an extra; a front's process sets its bounds before)
        except ImportError:
            raise MissingExtraError("an ONNX file is run by onnxruntime", extra) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        options.add_session_config_entry("session.load_model_format", "ONNX")  # the form that was checked
        try:
            self._session: Any = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception:  # onnxruntime has errors of its own, without a common root
            raise FileError(
                f"{name} cannot be run: onnxruntime does not take it; ask for it again"
            ) from None
        self.input_name = str(self._session.get_inputs()[0].name)
        self.output_name = str(self._session.get_outputs()[0].name)

    @classmethod
    def open(cls, path: Path, *, threads: int = 1, extra: str = "front") -> "OnnxSession":
        """That of a file."""
        return cls(path.read_bytes(), threads=threads, name=str(path), extra=extra)

    def __call__(self, batch: Array) -> npt.NDArray[np.float32]:
        """What it gives for a batch of 32-bit floats."""
        (found,) = self._session.run(None, {self.input_name: batch})
        return np.asarray(found, np.float32)
