"""Which modules of the package a module reaches, found by reading the code and never by running it.

A package's `__init__` counts as soon as anything inside it is imported. An import inside a function counts
like one at the top, and so does a module that is only named in a string, as lazy loading does. Whoever
holds the package itself, as after `import mole`, reaches every name that it offers.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "mole"
LAZY_NAMES = "_HOMES"

PROVIDERS_WORK = """
import numpy as np
import mole
layer = mole.FirstLayer.conv(np.ones((2, 1, 3, 3)), None, input_shape=(1, 6, 6))
key = mole.MorphKey.generate(layer.input_shape)
morphed = mole.morph(np.ones((2, 1, 6, 6)), key)
mole.augment(layer, key).features(morphed)
mole.unmorph(morphed, key)
"""


HEAVY = ("torch", "pyarrow", "ray", "scipy", "transformers")
REPORT = f"\nimport sys; print([name for name in {HEAVY} if name in sys.modules])"


class Tree:
    """The modules below a copy of the package's folder, by dotted name."""

    def __init__(self, source: Path = SOURCE) -> None:
        self.files = {_dotted(file, source): file for file in sorted(source.rglob("*.py"))}
        self._named: dict[str, set[str]] = {}
        self._packages = {name for name, file in self.files.items() if file.name == "__init__.py"}
        self._homes = _lazy_homes(self._code("mole"))

    def modules_in(self, room: str) -> list[str]:
        """Every module of a folder of the package, its subfolders included."""
        return [name for name in self.files if name == f"mole.{room}" or name.startswith(f"mole.{room}.")]

    def reached_from(self, room: str) -> dict[str, str]:
        """Every module that a room reaches, over however many steps, and who imports it first."""
        reached = dict.fromkeys(self.modules_in(room), "itself")
        waiting = list(reached)
        while waiting:
            module = waiting.pop()
            for name in self._imported_by(module) - set(reached):
                reached[name] = module
                waiting.append(name)
        return reached

    def foreign_imports(self, module: str) -> set[str]:
        """What a module imports from outside of the package: `numpy.random`, `torch`, ..."""
        return {name for name in self._named_by(module) if name.split(".")[0] != "mole"}

    def code_of(self, module: str) -> str:
        """A module's code without its docstrings, which may show examples."""
        return _without_docstrings(self.files[module].read_text())

    def names_used_in(self, module: str) -> set[str]:
        """Every bare name in a module: `open`, `print`, ..."""
        return {node.id for node in ast.walk(self._code(module)) if isinstance(node, ast.Name)}

    def _code(self, module: str) -> ast.Module:
        return _parse(self.files[module].read_text())

    def _imported_by(self, module: str) -> set[str]:
        found = set()
        for name in self._named_by(module):
            parts = name.split(".")
            found |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        return found & self.files.keys()

    def _named_by(self, module: str) -> set[str]:
        if module not in self._named:
            self._named[module] = self._find_named(module)
        return self._named[module]

    def _find_named(self, module: str) -> set[str]:
        is_lazy = module == "mole"  # loads its names when they are first used
        named: set[str] = set()
        for node in _telling_nodes(self.files[module].read_text(), skip_type_checking=is_lazy):
            if isinstance(node, ast.Import):
                named.update(alias.name for alias in node.names)
                if any(_binds_the_package(alias) for alias in node.names):
                    named.update(self._homes.values())
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node, module)
                named.add(base)
                named.update(self._home(f"{base}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                named.add(self._home(f"{node.value.id}.{node.attr}"))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not is_lazy:
                named.update({node.value} & self.files.keys())
        return {name for name in named if name}

    def _base(self, node: ast.ImportFrom, module: str) -> str:
        """The module after `from`, with leading dots written out."""
        if not node.level:
            return node.module or ""
        package = module if module in self._packages else module.rpartition(".")[0]
        for _ in range(node.level - 1):
            package = package.rpartition(".")[0]
        return f"{package}.{node.module}" if node.module else package

    def _home(self, name: str) -> str:
        """Where a name lives: `mole.MorphKey` is loaded lazily from the home that the package lists."""
        return self._homes.get(name.removeprefix("mole."), name) if name.startswith("mole.") else name


@cache
def _parse(text: str) -> ast.Module:
    """Parsed once, however many copies of the tree are looked at."""
    return ast.parse(text)


@cache
def _without_docstrings(text: str) -> str:
    """Code as Python writes it, with nothing in place of bare strings."""
    tree = ast.parse(text)  # one of its own, to be changed
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    return ast.unparse(tree)


@cache
def _telling_nodes(text: str, *, skip_type_checking: bool) -> list[ast.AST]:
    """The nodes of a module that can name another one."""
    found = _nodes(_parse(text), skip_type_checking=skip_type_checking)
    return [
        node
        for node in found
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute | ast.Constant)
    ]


@cache
def room_of(module: str) -> str:
    """The folder that a module lies in: 'torch' for mole.torch.find; 'root' for mole.errors."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (SOURCE / parts[1]).is_dir() else "root"


def _binds_the_package(alias: ast.alias) -> bool:
    return alias.name == "mole" or (alias.name.startswith("mole.") and alias.asname is None)


def _dotted(file: Path, source: Path) -> str:
    parts = ["mole", *file.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _lazy_homes(package: ast.Module) -> dict[str, str]:
    for node in package.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == LAZY_NAMES:
            return {name: f"mole.{home}" for name, home in ast.literal_eval(node.value).items()}
    raise AssertionError(f"mole/__init__.py has no {LAZY_NAMES}: where do its names live?")


def _nodes(tree: ast.AST, *, skip_type_checking: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        is_guard = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if is_guard and skip_type_checking:
            continue
        yield node
        yield from _nodes(node, skip_type_checking=skip_type_checking)
