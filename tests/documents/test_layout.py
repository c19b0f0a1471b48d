"""The files of the package: one idea each, imports at the top, options named by the command line alone."""

import ast
import re
import statistics

import pytest

from imports import SOURCE, Tree, room_of

EXTRAS = ("mole.torch", "mole.audit", "mole.demo.story", "mole.serving.server")
ENTRY = "mole.cli"  # loads everything else while Ctrl-C is heard


@pytest.fixture(scope="module")
def tree():
    return Tree()


def imports_inside_functions(tree: Tree) -> dict[str, list[str]]:
    """What each module imports inside its functions, a name for each statement."""
    found: dict[str, list[str]] = {}
    for module, file in tree.files.items():
        functions = [
            node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)
        ]
        inside = {node for function in functions for node in ast.walk(function)}
        names = [node.module for node in inside if isinstance(node, ast.ImportFrom)]
        names += [node.names[0].name for node in inside if isinstance(node, ast.Import)]
        if names:
            found[module] = [name or "." for name in names]
    return found


def test_imports_stand_at_the_top_but_for_extras(tree):
    found = imports_inside_functions(tree)
    assert sum(map(len, found.values())) <= 25
    commands = {module: names for module, names in found.items() if room_of(module) == "cli"}
    assert {name for module, names in commands.items() if module != ENTRY for name in names} <= {*EXTRAS}


def test_only_the_command_line_names_options(tree):
    """Messages of the library name parameters; `errors` shows in its docstring how they become options."""
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    naming = {
        module
        for module in tree.files
        if room_of(module) not in ("cli", "root") and option.search(strings_in(tree, module))
    }
    assert naming == set()


def strings_in(tree: Tree, module: str) -> str:
    """All text in a module's code that is no docstring and no style sheet."""
    code = ast.parse(tree.code_of(module))
    texts = [node.value for node in ast.walk(code) if isinstance(node, ast.Constant)]
    return "\n".join(text for text in texts if isinstance(text, str) and "var(--" not in text)


def test_files_have_the_size_of_one_idea():
    files = [file for file in SOURCE.rglob("*.py") if file.name != "__init__.py"]
    lines = {file.name: len(file.read_text().splitlines()) for file in files}
    assert max(lines.values()) <= 300
    assert 100 <= statistics.median(lines.values()) <= 140
    assert sum(count <= 50 for count in lines.values()) <= 8
