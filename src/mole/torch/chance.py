"""Random numbers while a model is looked at: the same in every run, and pushed to their limits.

A model may change its input by chance, as `if torch.rand(1) < p` does. Where such a number is as small, or
as large, as it can be, the branch is taken however small p is. Python's and NumPy's generators are seeded.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Chance = int | Literal["lowest", "highest"]
"""A seed, or draws that are all as small or as large as they can be."""

MOST_PUSHED = 100  # draws of a run: a model may draw until it likes what it gets
_UNIFORM = {"rand", "rand_like", "uniform", "uniform_"}
_WHOLE = {"randint", "randint_like", "random", "random_"}


@contextmanager
def seeded(chance: Chance) -> Iterator[None]:
    """Random numbers of PyTorch, Python and NumPy from a seed; afterwards all three are as they were."""
    seed = chance if isinstance(chance, int) else 0
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  (other people's models use it)
    try:
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(seed)  # quicker than torch.manual_seed
            if torch.cuda.is_available():
                torch.cuda.manual_seed_all(seed)
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


class Draws:
    """Whether anything was drawn at random since a moment, as far as that can be seen.

    A NumPy generator that a model holds itself cannot be.
    """

    def __init__(self) -> None:
        self._python, self._numpy = _states()
        self._torch = False

    def see(self, func: Any) -> None:
        """An operation of PyTorch ran."""
        self._torch = self._torch or torch.Tag.nondeterministic_seeded in func.tags

    @property
    def any(self) -> bool:
        """Whether there was one."""
        return self._torch or (self._python, self._numpy) != _states()


def _states() -> tuple[Any, Any]:
    """Python's and NumPy's random states, to compare."""
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    return random.getstate(), (state["state"]["pos"], state["state"]["key"].tobytes())


class Pusher:
    """Pushes the first draws of a run to a limit of what they could have been."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._pushed = 0

    def push(self, operation: str, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: Any) -> None:
        """Change what an operation drew, if it drew anything.

        >>> drawn = torch.rand(2)
        >>> Pusher("lowest").push("rand", ([2],), {}, drawn)
        >>> drawn
        tensor([0., 0.])
        """
        if isinstance(self._chance, int) or self._pushed >= MOST_PUSHED or not isinstance(drawn, Tensor):
            return
        highest = self._chance == "highest"
        if operation in _UNIFORM:
            low, high = _between(args, kwargs) if operation.startswith("uniform") else (0.0, 1.0)
            limit = torch.tensor(high, dtype=drawn.dtype, device="cpu")
            below = torch.nextafter(limit, torch.full_like(limit, low)).item() if low < high else low
            drawn.fill_(below if highest else low)
        elif operation in _WHOLE:
            bounds = [value for value in args if isinstance(value, int) and not isinstance(value, bool)]
            if not bounds:
                return
            low, high = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
            drawn.fill_(high - 1 if highest else low)
        elif operation in ("bernoulli", "bernoulli_"):
            _push_coins(args, kwargs, drawn, float(highest))
        else:
            return
        self._pushed += 1


def _between(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, float]:
    low = args[1] if len(args) > 1 else kwargs.get("from", 0.0)
    high = args[2] if len(args) > 2 else kwargs.get("to", 1.0)
    return float(low), float(high)


def _push_coins(args: tuple[Any, ...], kwargs: dict[str, Any], drawn: Tensor, side: float) -> None:
    """All coins show one side, but for those that have only one."""
    inplace_probability = args[1] if len(args) > 1 else kwargs.get("p")
    probability = args[0] if inplace_probability is None and drawn is not args[0] else inplace_probability
    if probability is None:  # bernoulli_() of its own is a fair coin
        probability = 0.5
    probability = torch.as_tensor(probability, device=drawn.device)
    if not probability.is_floating_point():
        return
    open_coins = ((probability > 0) & (probability < 1)).expand_as(drawn)
    drawn.masked_fill_(open_coins, side)
