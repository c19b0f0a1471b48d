"""Count a network's multiplications by running it without numbers.

The network runs on PyTorch's meta device, where tensors have shapes but no values, so ResNet-152 at 224x224
takes only a moment. PyTorch's own counter sees every convolution and matrix product below autograd, even
where there is no module for it, as in attention. A MAC is one multiplication with its addition.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from mole.errors import UnsupportedLayerError
from mole.scheme.shapes import Shape, check_shape
from mole.torch.running import in_mode, uncompiled

FLOPS_PER_MAC = 2


def count_macs(model: nn.Module, input_shape: Shape) -> int:
    """MACs of a forward pass on one sample.

    >>> model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(65536, 10))
    >>> count_macs(model, (3, 32, 32)) == 64 * 32**2 * 3 * 3**2 + 65536 * 10
    True

    The model is left as it was. The padding's zeros count like other values; additions do not.

    Args:
        model: any module that takes a batch of samples as its first argument.
        input_shape: shape of one sample, such as (3, 32, 32).

    Raises:
        UnsupportedLayerError: if the model does not run on such a sample.
    """
    return _count(model, input_shape, backward=False)


def count_training_macs(model: nn.Module, input_shape: Shape) -> int:
    """MACs of a training step for one sample: forward, and back to every parameter that learns.

    A first layer that learns needs the gradients of its weight, but not those of the images:

    >>> count_training_macs(nn.Sequential(nn.Flatten(), nn.Linear(8, 4), nn.Linear(4, 2)), (2, 4))
    88
    """
    return _count(model, input_shape, backward=True)


def _count(model: nn.Module, input_shape: Shape, *, backward: bool) -> int:
    model, shape = uncompiled(model), check_shape(input_shape)
    counter = FlopCounterMode(display=False)
    with ExitStack() as stack:
        stack.enter_context(in_mode(model, training=False))  # dropout and running means do not multiply
        stack.enter_context(_without_fused_attention())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.set_grad_enabled(backward))
        stack.enter_context(torch.device("meta"))
        stack.enter_context(counter)
        try:
            _run(model, shape, backward=backward)
        except Exception as error:  # other people's code can fail in any way
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            raise UnsupportedLayerError(
                f"{type(model).__name__} cannot be counted on a sample of shape {shape}", [first_line]
            ) from error
    return counter.get_total_flops() // FLOPS_PER_MAC


def _run(model: nn.Module, shape: Shape, *, backward: bool) -> None:
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    shapes_only = {name: _without_values(tensor) for name, tensor in tensors.items()}
    dtype = next((t.dtype for t in tensors.values() if t.is_floating_point()), torch.float32)
    output = torch.func.functional_call(model, shapes_only, (torch.empty(1, *shape, dtype=dtype),))
    if backward:
        _sum(output).backward()


def _without_values(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, device="meta", requires_grad=tensor.requires_grad)


def _sum(output: Any) -> Tensor:
    """One number that depends on every tensor of an output, in place of a loss."""
    leaves = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not leaves:
        raise ValueError("nothing in it learns")
    return torch.stack([leaf.sum() for leaf in leaves]).sum()


@contextmanager
def _without_fused_attention() -> Iterator[None]:
    """Attention as matrix products, which the counter knows; it does not know every fused form."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
