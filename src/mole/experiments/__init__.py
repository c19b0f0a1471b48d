"""Experiments: what the scheme and its protection cost in accuracy, measured on real images.

Each is a file with a function that returns a result for JSON; `mole experiment` runs them by name.
"""

from importlib.util import find_spec

from mole.errors import MissingExtraError

if any(
    find_spec(name) is None
    for name in ("matplotlib", "onnx", "onnxruntime", "onnxscript", "scipy", "torch")
):
    raise MissingExtraError("experiments need more packages", "experiments")
