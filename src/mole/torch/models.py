"""Models by name, built in or from a factory, and weights from files that hold no code."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from mole.errors import FileError, ParameterError
from mole.scheme.shapes import Array, Shape
from mole.storage.atomic import reason_of
from mole.storage.mapped import own_copy
from mole.torch.networks import build_network

SHOWN = 3  # problems at most
MAX_DEPTH = 3
WRAPPINGS = (
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "module",
    "net",
    "network",
    "weights",
)


def build_model(
    network: str, input_shape: Shape, classes: int, weights: str | PathLike[str] | None = None
) -> nn.Module:
    """A built-in network, or the one that a factory of your own makes.

        model = build_model("small_resnet", (3, 32, 32), classes=10)
        model = build_model("networks:resnet", (3, 32, 32), classes=10, weights="resnet.pt")

    Args:
        network: 'small_vgg', 'small_resnet', 'vgg16', or 'module:function'. The latter runs the module's
            code: never use a name that came with a file from somebody else.
        input_shape: shape of a sample.
        classes: how many classes it tells apart.
        weights: a .safetensors, .pt or .pth file to load into it.

    Raises:
        ParameterError: if there is no such network, or it cannot be built.
        FileError: if the weights cannot be read or do not fit.
    """
    if ":" in network:
        model = load_model(network, input_shape=input_shape, classes=classes)
    else:
        model = build_network(network, input_shape, classes)
    if weights is not None:
        load_weights(model, weights)
    return model


def load_model(name: str, **offered: Any) -> nn.Module:
    """The model that a function makes, given as 'module:function'; the current folder is searched first.

        model = load_model("networks:resnet", input_shape=(3, 32, 32), classes=10)

    The function gets those of the offered arguments that it has parameters for. This runs the module's
    code: never use a name that came with a file from somebody else.

    Raises:
        ParameterError: if there is no such function, or what it makes is not a model.
    """
    with _current_folder_first():
        factory = _factory(name)
        try:
            model = factory(**_accepted(factory, offered))
        except Exception as error:  # other people's code can fail in any way
            raise ParameterError(f"{name} could not make a model: {first_line(error)}") from error
    if not isinstance(model, nn.Module):
        raise ParameterError(f"{name} gives a {type(model).__name__}, not a torch.nn.Module")
    return model


def load_weights(model: nn.Module, path: str | PathLike[str]) -> None:
    """Put the weights of a .safetensors, .pt or .pth file into a model; nothing in the file is run.

    Raises:
        FileError: if the file cannot be read or does not fit; the model is then unchanged.
    """
    fill(model, read_weights(Path(path)), str(path))


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, or of a state dict that torch.save wrote."""
    readers: dict[str, Callable[[Path], Any]] = {".safetensors": load_file, ".pt": _load, ".pth": _load}
    if path.suffix.lower() not in readers:
        raise FileError(f"{path} is not a file of weights: give {', '.join(readers)}")
    try:
        with path.open("rb"):  # says clearly if it is missing or a folder
            pass
        content = readers[path.suffix.lower()](path)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason_of(error)}") from None
    except Exception:  # torch.load fails in many ways on a file that is not its own
        raise FileError(
            f"{path} holds no weights, or it is damaged: save them with torch.save(model.state_dict(), ...)"
        ) from None
    content = _unwrapped(content)
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise FileError(f"{path} holds something other than weights: save model.state_dict() in it")
    return content


def _unwrapped(content: Any) -> Any:
    """The state dict that training loops put beside their own state, under one of the usual names.

    >>> _unwrapped({"epoch": 3, "model": {"state_dict": {"weight": 1}}})
    {'weight': 1}
    """
    for _ in range(MAX_DEPTH):
        if isinstance(content, dict):
            inner = (content[name] for name in WRAPPINGS if isinstance(content.get(name), dict))
            content = next(inner, content)
    return content


def fill(model: nn.Module, weights: Mapping[str, Tensor], label: str) -> None:
    """Load a state dict into a model; if it does not fit, say why and leave the model as it is."""
    own = model.state_dict()
    problems = [f"'{name}' is missing" for name in own if name not in weights]
    problems += [f"'{name}' is unexpected" for name in weights if name not in own]
    # Checkpoint files have no single numbers, only vectors of one.
    weights = {
        name: tensor.reshape(()) if name in own and not own[name].ndim and tensor.numel() == 1 else tensor
        for name, tensor in weights.items()
    }
    problems += [
        f"'{name}' is {tuple(tensor.shape)} and should be {tuple(own[name].shape)}"
        for name, tensor in weights.items()
        if name in own and tensor.shape != own[name].shape
    ]
    if problems:
        more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise FileError(f"{label} does not fit the model: {', '.join(problems[:SHOWN])}{more}")
    model.load_state_dict(weights)


def as_tensors(arrays: Mapping[str, Array]) -> dict[str, Tensor]:
    """Arrays of a file as tensors, without a copy; those that are mapped become writable here alone."""
    return {
        name: torch.from_numpy(array if array.flags.writeable else own_copy(array))
        for name, array in arrays.items()
    }


def _load(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


def _factory(name: str) -> Callable[..., Any]:
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ParameterError(f"'{name}' does not name a model: write it as module:function")
    if module_name.endswith(".py"):
        written = f"{Path(module_name).stem}:{attribute}"
        raise ParameterError(
            f"'{name}' names a file, and a module is needed here: write {written}, without .py, and call "
            "from the folder where it lies"
        )
    try:
        importlib.invalidate_caches()
        module = importlib.import_module(module_name)
    except Exception as error:  # other people's code can fail in any way
        reason = first_line(error)
        if isinstance(error, ModuleNotFoundError) and error.name == module_name:
            reason += f": is {module_name}.py in this folder, and its name right?"
        raise ParameterError(f"module '{module_name}' cannot be imported: {reason}") from error
    factory = getattr(module, attribute, None)
    if not callable(factory):
        near = get_close_matches(attribute, [name for name in vars(module) if name[0] != "_"], n=1)
        fix = f"did you mean {module_name}:{near[0]}?" if near else "correct the name"
        raise ParameterError(f"module '{module_name}' has no function '{attribute}': {fix}")
    found: Callable[..., Any] = factory
    return found


def _accepted(factory: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # a few built-in classes have no signature
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(offered)
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    return {name: value for name, value in offered.items() if name in names}


@contextmanager
def _current_folder_first() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def first_line(error: Exception) -> str:
    """What somebody else's error says, in a line."""
    return (str(error).splitlines() or [type(error).__name__])[0] or type(error).__name__
