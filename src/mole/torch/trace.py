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
from mole.scheme.shapes import Shape
from mole.torch.chance import Chance, Draws, Pusher, seeded
from mole.torch.module import AugmentedModule
from mole.torch.running import in_mode
from mole.torch.zeros import added_since, total, zeros_added

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


class Operation(NamedTuple):
    """What a layer did with the input, as it ran: the weight may be worked out anew in every call.

    A convolution's stride, zeros around the input that the layer itself adds, and so on; for a Linear layer
    they are empty.
    """

    weight: Tensor
    bias: Tensor | None
    stride: Shape = ()
    padding: Padding = ()
    dilation: Shape = ()
    groups: int = 1


class Call(NamedTuple):
    """A linear layer's call with the input.

    Attributes:
        padding: zeros that stood around the input, (before, after) for each of its last axes.
        output: a copy of the result, because an activation may overwrite it.
        operation: what it did; None if that was more than one convolution or product.
    """

    padding: Padding
    output: Tensor
    operation: Operation | None


@dataclass
class Trace:
    """What happened to the input.

    Attributes:
        taken_by: for each linear layer that took the input, by name, its calls.
        called_otherwise: names of linear layers that were called with something else.
        weight_read: names of linear layers whose parameters were read by something else.
        touched: operations outside linear layers that read the input, as 'operation in module'.
        random: whether random numbers were drawn at all.
        random_before: whether some were drawn before a linear layer first took the input.
        error: what ended the run early, if anything did.
    """

    taken_by: dict[str, list[Call]] = field(default_factory=dict)
    called_otherwise: set[str] = field(default_factory=set)
    weight_read: set[str] = field(default_factory=set)
    touched: list[str] = field(default_factory=list)
    random: bool = False
    random_before: bool = False
    error: Exception | None = None


class _EnoughSeen(BaseException):
    """Ends a run once a layer has taken the input; no model catches this by mistake."""


def trace_input(
    model: nn.Module, batch: Tensor, *, training: bool, chance: Chance = 0, whole: bool = True
) -> Trace:
    """Run the model on a batch, in either mode and without gradients, and follow the batch.

    Afterwards the model, its buffers and all random states are as they were.

    Args:
        model: any module that takes the batch as its first argument.
        batch: what to follow.
        training: the mode.
        chance: where the model's random numbers come from.
        whole: run it to its end, not only until the first layer has taken the input.
    """
    follower = _Follower(model, batch, chance=chance, whole=whole)
    with ExitStack() as stack:
        stack.enter_context(in_mode(model, training=training))
        stack.enter_context(_unchanged_buffers(model))
        stack.enter_context(seeded(chance))
        follower.start()
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast(batch.device.type, enabled=False))
        if torch.get_default_device().type == "meta":
            stack.enter_context(torch.device(batch.device))
        for name, module in model.named_modules():
            # First of all hooks, because some work out the weight that the layer then uses.
            entering = module.register_forward_pre_hook(
                follower.entering(name), with_kwargs=True, prepend=True
            )
            stack.callback(entering.remove)
            leaving = module.register_forward_hook(follower.leaving(name), always_call=True)
            stack.callback(leaving.remove)
        stack.enter_context(follower)
        try:
            model(batch)
        except _EnoughSeen:
            pass
        except Exception as error:  # other people's code can fail in any way
            follower.trace.error = error
        follower.finish()
    return follower.trace


class _Follower(TorchDispatchMode):
    def __init__(self, model: nn.Module, batch: Tensor, *, chance: Chance, whole: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._whole = whole
        self._pusher, self._draws = Pusher(chance), Draws()
        self._owners: dict[int, list[tuple[str, nn.Module]]] = {}  # of each parameter's memory
        for name, module in model.named_modules():
            for parameter in module.parameters() if isinstance(module, LINEAR_LAYERS) else ():
                self._owners.setdefault(_memory(parameter), []).append((name, module))
        self._kept: list[Tensor] = []  # kept alive, so that no other tensor gets their memory
        self._padding_of: dict[int, Padding] = {}  # of each memory that holds the input
        self._modules: list[tuple[str, nn.Module]] = []
        self._linear_layer: nn.Module | None = None  # the one that is running
        self._taken: Padding | None = None  # what it took, if it took the input
        self._operations: list[Operation | None] = []  # that it did on the input; None for unknown ones
        self._follow(batch, ())

    def start(self) -> None:
        """Random states are set: from now on, draws count."""
        self._draws = Draws()

    def finish(self) -> None:
        """Random states are about to be put back."""
        self.trace.random = self._draws.any

    def entering(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._modules.append((name, module))
            if self._linear_layer is None and isinstance(module, LINEAR_LAYERS):
                self._linear_layer = module
                self._operations = []
                self._taken = self._input_among((args, kwargs))

        return hook

    def leaving(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            self._modules.pop()
            if self._linear_layer is not module:
                return
            taken, operation = self._taken, self._operation_of(module)
            self._linear_layer = self._taken = None
            if taken is None:
                self.trace.called_otherwise.add(name)
                return
            if not self.trace.taken_by:
                self.trace.random_before = self._draws.any
            output = output.detach().clone() if isinstance(output, Tensor) else output
            self.trace.taken_by.setdefault(name, []).append(Call(taken, output, operation))
            if not self._whole:
                raise _EnoughSeen

        return hook

    def _operation_of(self, module: nn.Module) -> Operation | None:
        if isinstance(module, nn.Linear) and self._taken is not None:
            return Operation(module.weight, module.bias)
        return self._operations[0] if len(self._operations) == 1 else None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        operation = func.overloadpacket.__name__
        self._draws.see(func)
        self._pusher.push(operation, args, kwargs, output)
        self._watch_parameters((args, kwargs))
        padding = self._input_among((args, kwargs))
        if padding is None or operation in _NO_VALUES or isinstance(self._linear_layer, AugmentedModule):
            return output
        added = zeros_added(args) if operation == "constant_pad_nd" else None
        if _is_same(func, operation, args, output):
            self._follow(output, padding)
        elif added is not None:
            self._follow(output, total(padding, added))
        elif self._linear_layer is None:
            self._note(operation)
        elif self._taken is not None:
            self._operations.append(self._convolution(operation, args, padding))
        return output

    def _convolution(self, operation: str, args: tuple[Any, ...], padding: Padding) -> Operation | None:
        """A convolution of the input with the zeros that the running layer put around it."""
        if operation != "convolution" or args[6] or self._input_among(args[1:]) is not None:
            return None
        _, weight, bias, *numbers, groups = args
        axes = weight.ndim - 2
        stride, own, dilation = (tuple(number) * (axes // len(number)) for number in numbers[:3])
        inside = added_since(self._taken or (), padding, axes=axes)
        if inside is None:
            return None
        pairs = zip(inside, own, strict=True)
        sides = tuple((before + side, after + side) for (before, after), side in pairs)
        return Operation(weight, bias, stride, sides, dilation, groups)

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


def _is_same(func: Any, operation: str, args: tuple[Any, ...], output: Any) -> bool:
    """Whether an operation on the input gives the same values in the same order."""
    if operation in _SAME_VALUES:
        return bool(output.is_floating_point())
    if operation != "slice":
        return False
    source = args[0]  # a slice that leaves nothing out, such as x[:]
    return bool(output.shape == source.shape and output.stride() == source.stride())


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
