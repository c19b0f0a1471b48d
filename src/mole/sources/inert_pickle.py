"""Pickles as data: a small machine that runs none of them.

A pickle is a program. Python's own reader calls what the program names, and no list of names is harmless:
`numpy.ndarray` alone is enough to read memory that is not there. Here nothing is ever looked up or called.
A name stays a `Name`, a call becomes a `Call` with its arguments, and whoever reads the result decides what
to make of the few that it expects.
"""

import pickletools
from collections.abc import Set
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_STACK = 1 << 20  # a batch of CIFAR's has some ten thousand values on it


class PickleError(ValueError):
    """Bytes that are no pickle, or one that does more than plain data needs."""


class Name(NamedTuple):
    """Something that the pickle refers to, in words: it was not looked up."""

    module: str
    name: str


@dataclass(eq=False)
class Call:
    """What the pickle would have called, with which arguments, and the state it would have set after."""

    name: Name
    arguments: tuple[Any, ...]
    state: Any = None


def read_pickle(content: bytes, known: Set[Name]) -> Any:
    """What a pickle describes, as numbers, text, bytes, lists, tuples, dictionaries, names and calls.

    Text of Python 2, which may be bytes, comes as text in Latin-1. A name that is not known is refused.

    >>> import pickle
    >>> read_pickle(pickle.dumps({"labels": [3, 1]}), set())
    {'labels': [3, 1]}
    >>> read_pickle(pickle.dumps(print), set())
    Traceback (most recent call last):
    mole.sources.inert_pickle.PickleError: it names something that has no place in it
    """
    machine = _Machine(known)
    try:
        for opcode, argument, _ in pickletools.genops(content):
            machine.step(opcode.name, argument)
        return machine.result()
    except PickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise PickleError(f"it is not a pickle of plain data ({type(error).__name__})") from None


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING",
    "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
    "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Machine:
    """The stack and the memory of a pickle, and what each of its instructions does to them."""

    def __init__(self, known: Set[Name]) -> None:
        self._known = known
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memory: dict[int, Any] = {}
        self._is_done = False

    def result(self) -> Any:
        if not self._is_done or len(self._stack) != 1:
            raise PickleError("it is cut off")
        return self._stack[0]

    def step(self, name: str, argument: Any) -> None:
        if len(self._stack) + len(self._marks) > MAX_STACK:
            raise PickleError("it is too long")
        if name in _VALUES:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            self._stack.append(tuple(self._pop() for _ in range(_TUPLES[name]))[::-1])
        elif name not in ("PROTO", "FRAME"):
            getattr(self, f"_{name.lower()}")(argument)

    def _pop(self) -> Any:
        if self._marks and len(self._stack) <= self._marks[-1]:
            raise PickleError("its marks are wrong")
        return self._stack.pop()

    def _since_mark(self) -> list[Any]:
        at = self._marks.pop()
        values = self._stack[at:]
        del self._stack[at:]
        return values

    def _top(self, kind: type) -> Any:
        if not isinstance(self._stack[-1], kind):
            raise PickleError("it changes what is not there to be changed")
        return self._stack[-1]

    def _mark(self, _: None) -> None:
        self._marks.append(len(self._stack))

    def _stop(self, _: None) -> None:
        self._is_done = True

    def _empty_dict(self, _: None) -> None:
        self._stack.append({})

    def _empty_list(self, _: None) -> None:
        self._stack.append([])

    def _empty_tuple(self, _: None) -> None:
        self._stack.append(())

    def _tuple(self, _: None) -> None:
        self._stack.append(tuple(self._since_mark()))

    def _list(self, _: None) -> None:
        self._stack.append(self._since_mark())

    def _dict(self, _: None) -> None:
        values = self._since_mark()
        self._stack.append({})
        self._put_all(values)

    def _append(self, _: None) -> None:
        value = self._pop()
        self._top(list).append(value)

    def _appends(self, _: None) -> None:
        values = self._since_mark()
        self._top(list).extend(values)

    def _setitem(self, _: None) -> None:
        value, key = self._pop(), self._pop()
        self._put_all([key, value])

    def _setitems(self, _: None) -> None:
        self._put_all(self._since_mark())

    def _put_all(self, values: list[Any]) -> None:
        entries = self._top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str | int):
                raise PickleError("its keys are neither text nor numbers")
            entries[key] = value

    def _put(self, where: int) -> None:
        self._memory[int(where)] = self._stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: None) -> None:
        self._memory[len(self._memory)] = self._stack[-1]

    def _get(self, where: int) -> None:
        self._stack.append(self._memory[int(where)])

    _binget = _long_binget = _get

    def _global(self, names: str) -> None:
        self._refer(Name(*names.split(" ", 1)))

    def _stack_global(self, _: None) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):  # deep tuples overflow the C stack
            raise PickleError("it names something without a name")
        self._refer(Name(module, name))

    def _refer(self, name: Name) -> None:
        if name not in self._known:
            raise PickleError("it names something that has no place in it")
        self._stack.append(name)

    def _reduce(self, _: None) -> None:
        arguments, name = self._pop(), self._pop()
        if not isinstance(name, Name) or not isinstance(arguments, tuple):
            raise PickleError("it calls something that has no name")
        self._stack.append(Call(name, arguments))

    def _build(self, _: None) -> None:
        state = self._pop()
        self._top(Call).state = state
