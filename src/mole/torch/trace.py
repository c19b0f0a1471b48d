"""Follow a model's input while the model runs: which layers take it, and what else touches it.

A module's place among the attributes says nothing about when it runs, so the model is run on a random
batch. Below autograd every operation passes through a dispatcher, which sees the tensors that it reads. A
tensor that shares memory with the input, or is a plain or zero-padded copy of it, still is the input.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mole.scheme.first_layer import Padding
from mole.torch.module import AugmentedModule
from mole.torch.running import in_mode

LINEAR_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, AugmentedModule)

# These keep every value and the order of elements, and change at most shape, precision or memory.
_SAME_VALUES = {
    "alias", "clone", "contiguous", "detach", "flatten", "lift_fresh", "reshape", "squeeze", "to",
    "_to_copy", "unsqueeze", "_unsafe_view", "view", "_reshape_alias", "_reshape_copy", "view_copy",
}  # fmt: skip
# These look at shape, precision and device only.
_NO_VALUES = {
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like",
    "new_empty", "new_zeros", "new_ones", "new_full",
}  # fmt: skip


class Call(NamedTuple):
    """A linear layer's call with the input: the zeros that stood around the input, and the result."""

    padding: Padding
    output: Tensor


@dataclass
class Trace:
    """What happened to the input.

    Attributes:
        taken_by: for each linear layer that took the input, by name, its calls.
        called_otherwise: names of linear layers that were called with something else.
        weight_read: names of linear layers whose parameters were read by something else.
        touched: operations outside linear layers that read the input, as 'operation in module'.
    """

    taken_by: dict[str, list[Call]] = field(default_factory=dict)
    called_otherwise: set[str] = field(default_factory=set)
    weight_read: set[str] = field(default_factory=set)
    touched: list[str] = field(default_factory=list)


def trace_input(model: nn.Module, batch: Tensor, *, training: bool) -> Trace:
    """Run the model on a batch, in either mode and without gradients, and follow the batch.

    Afterwards the model, its buffers and PyTorch's random state are as they were.
    """
    follower = _Follower(model, batch)
    with ExitStack() as stack:
        stack.enter_context(in_mode(model, training=training))
        stack.enter_context(_unchanged_buffers(model))
        stack.enter_context(torch.random.fork_rng())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.no_grad())
        for name, module in model.named_modules():
            entering = module.register_forward_pre_hook(follower.entering(name), with_kwargs=True)
            stack.callback(entering.remove)
            leaving = module.register_forward_hook(follower.leaving(name), always_call=True)
            stack.callback(leaving.remove)
        stack.enter_context(follower)
        model(batch)
    return follower.trace


class _Follower(TorchDispatchMode):
    def __init__(self, model: nn.Module, batch: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._owners: dict[int, list[tuple[str, nn.Module]]] = {}  # of each parameter's memory
        for name, module in model.named_modules():
            for parameter in module.parameters() if isinstance(module, LINEAR_LAYERS) else ():
                self._owners.setdefault(_memory(parameter), []).append((name, module))
        self._kept: list[Tensor] = []  # kept alive, so that no other tensor gets their memory
        self._padding_of: dict[int, Padding] = {}  # of each memory that holds the input
        self._modules: list[tuple[str, nn.Module]] = []
        self._linear_layer: nn.Module | None = None  # the one that is running
        self._taken: Padding | None = None  # what it took, if it took the input
        self._follow(batch, ())

    def entering(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._modules.append((name, module))
            if self._linear_layer is None and isinstance(module, LINEAR_LAYERS):
                self._linear_layer = module
                self._taken = self._input_among((args, kwargs))

        return hook

    def leaving(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            self._modules.pop()
            if self._linear_layer is not module:
                return
            self._linear_layer = None
            if self._taken is None:
                self.trace.called_otherwise.add(name)
            else:
                self.trace.taken_by.setdefault(name, []).append(Call(self._taken, output))

        return hook

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        self._watch_parameters((args, kwargs))
        padding = self._input_among((args, kwargs))
        if self._linear_layer is None and padding is not None:
            operation = func.overloadpacket.__name__
            added = _zeros_added(args) if operation == "constant_pad_nd" else None
            if operation in _NO_VALUES:
                pass
            elif operation in _SAME_VALUES and output.is_floating_point():
                self._follow(output, padding)
            elif added is not None and not padding:
                self._follow(output, added)
            else:
                self._note(operation)
        return output

    def _follow(self, tensor: Tensor, padding: Padding) -> None:
        self._kept.append(tensor)
        self._padding_of[_memory(tensor)] = padding

    def _input_among(self, arguments: Any) -> Padding | None:
        """The padding around the input, if it is among the arguments; None if it is not."""
        tensors = (leaf for leaf in tree_leaves(arguments) if isinstance(leaf, Tensor))
        memories = (_memory(tensor) for tensor in tensors)
        return next((self._padding_of[m] for m in memories if m in self._padding_of), None)

    def _watch_parameters(self, arguments: Any) -> None:
        """Note the layers whose parameters something else reads: a weight that is shared or tied."""
        for leaf in tree_leaves(arguments):
            if isinstance(leaf, Tensor):
                for name, owner in self._owners.get(_memory(leaf), ()):
                    if owner is not self._linear_layer:
                        self.trace.weight_read.add(name)

    def _note(self, operation: str) -> None:
        where = next((name for name, _ in reversed(self._modules) if name), "")
        kind = type(self._modules[-1][1]).__name__ if self._modules else "the model"
        self.trace.touched.append(f"{operation} in {where + ' ' if where else ''}({kind})")


def _zeros_added(args: tuple[Any, ...]) -> Padding | None:
    """(before, after) of each axis but the first two, or None for any other padding."""
    tensor, sides, *value = args
    pairs: Padding = tuple(zip(sides[::2], sides[1::2], strict=True))[::-1]
    axes: int = tensor.ndim - 2
    if len(pairs) > axes or min(sides, default=0) < 0 or any(value):
        return None
    return ((0, 0),) * (axes - len(pairs)) + pairs


def _memory(tensor: Tensor) -> int:
    """The same for all tensors that share memory; 0 for tensors without any, such as sparse ones."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


@contextmanager
def _unchanged_buffers(model: nn.Module) -> Iterator[None]:
    """Buffers such as running means get their values back; an augmented layer's never change."""
    buffers = [
        (buffer, buffer.clone())
        for module in model.modules()
        if not isinstance(module, AugmentedModule)
        for buffer in module.buffers(recurse=False)
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
