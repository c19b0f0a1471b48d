"""The tree is the protocol: what each folder of the package may reach, over however many imports.

The table denies by default. A new file is covered the day it is made, because a rule is about its folder; a
new folder fails until it has a row.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from imports import SOURCE, Tree, room_of

SHARED = {"scheme", "storage"}
PROVIDER = SHARED | {"exchange", "sources", "protection", "provider"}
REACH = {
    "scheme": set(),
    "storage": set(),
    "analysis": {"scheme"},
    "attacks": {"scheme", "analysis"},
    "exchange": SHARED | {"protection"},
    "sources": SHARED,
    "protection": SHARED,
    "torch": SHARED | {"exchange", "protection"},
    "provider": SHARED | {"exchange", "sources", "protection"},
    "audit": PROVIDER | {"analysis", "attacks"},
    "demo": PROVIDER | {"analysis", "attacks", "audit", "torch"},
    "experiments": PROVIDER | {"analysis", "attacks", "audit", "torch"},
    "cli": PROVIDER | {"analysis", "attacks", "audit", "torch", "demo", "experiments"},
}
PURE = ("scheme", "analysis", "attacks")
INPUT_OUTPUT = {
    "pathlib",
    "io",
    "tempfile",
    "shutil",
    "socket",
    "subprocess",
    "safetensors",
    "pyrage",
    "fsspec",
}
TRAINS_A_NETWORK = {"mole.attacks.tools.trained_decoder", "mole.attacks.tools.decoder_network"}
ASKED_FOR = {"mole.provider.device_product"}  # loads PyTorch inside a function, where a device is named
FRAMEWORKS = {"torch", "pyarrow", "ray", "typer", "rich", "PIL"}


def trespassers(tree: Tree, room: str) -> list[str]:
    """The modules that a room reaches and may not, each with who imports it."""
    allowed = REACH[room] | {room, "root"}
    found = tree.reached_from(room).items()
    return [f"{by} imports {name}" for name, by in found if room_of(name) not in allowed]


@pytest.fixture(scope="module")
def tree():
    return Tree()


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the package; whoever plants something there takes it away."""
    folder = tmp_path_factory.mktemp("copy") / "mole"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__", "data"))
    return folder


@pytest.fixture
def plant(copy) -> Iterator[Callable[[str, str], None]]:
    """Write a file of the copy, or anew, until the end of a test."""
    before: dict[Path, str | None] = {}

    def write(name: str, text: str) -> None:
        before[copy / name] = (copy / name).read_text() if (copy / name).exists() else None
        (copy / name).write_text(text)

    yield write
    for file, text in before.items():
        file.unlink() if text is None else file.write_text(text)


@pytest.mark.parametrize("room", REACH)
def test_a_room_reaches_only_what_it_may(tree, room):
    assert tree.modules_in(room)
    assert trespassers(tree, room) == []


def test_every_folder_has_a_row():
    folders = {path.parent.relative_to(SOURCE).parts[0] for path in SOURCE.glob("*/**/*.py")}
    assert folders == set(REACH)


def test_the_package_itself_reaches_no_room(tree):
    """Its names are loaded at first use, so that importing it costs nothing and shows nobody a key."""
    assert {room_of(name) for name in tree.reached_from("errors")} == {"root"}


@pytest.mark.parametrize(
    "leak",
    [
        "from mole.provider.keys import MorphKey\n",
        "import mole.provider.keys.key\n",
        "from mole.provider import keys\n",
        "from mole import MorphKey\n",
        "import mole\n\nKEY = mole.MorphKey\n",
        "import mole as package\n\nKEY = package.MorphKey\n",
        "import mole.errors\n\nKEY = getattr(mole, 'Morph' + 'Key')\n",
        "def later():\n    from mole.provider.keys.key import MorphKey\n    return MorphKey\n",
        "import importlib\n\nKEYS = importlib.import_module('mole.provider.keys')\n",
        "from ..provider.keys import MorphKey\n",
    ],
)
@pytest.mark.parametrize("room", ["torch", "exchange", "attacks"])
def test_a_planted_leak_is_found(copy, plant, room, leak):
    """A new file that reaches the key; without it there is nothing to be found."""
    assert trespassers(Tree(copy), room) == []
    plant(f"{room}/helper.py", leak)
    assert trespassers(Tree(copy), room) != []


@pytest.mark.parametrize("room", ["torch", "exchange", "attacks"])
def test_a_leak_two_steps_away_is_found(copy, plant, room):
    """A new file that reaches the key, and one line in an old file that imports the new one."""
    plant("scheme/helper.py", "from mole.provider.keys import MorphKey\n")
    shapes = (copy / "scheme" / "shapes.py").read_text()
    plant("scheme/shapes.py", shapes + "\nfrom mole.scheme import helper  # noqa\n")
    assert "mole.scheme.helper imports mole.provider.keys" in trespassers(Tree(copy), room)


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_do_no_input_or_output_and_know_no_framework(tree, room):
    for module in tree.modules_in(room):
        roots = {name.split(".")[0] for name in tree.foreign_imports(module)}
        assert not roots & (INPUT_OUTPUT | FRAMEWORKS) or module in TRAINS_A_NETWORK, module
        assert not tree.names_used_in(module) & {"open", "print", "input"}, module


def test_nothing_on_the_providers_path_knows_torch(tree):
    knowing = (
        {name for name in tree.files if "torch" in roots_of(tree, name)} - TRAINS_A_NETWORK - ASKED_FOR
    )
    assert {room_of(name) for name in knowing} <= {"torch", "demo", "experiments", "cli"}


def test_secrets_come_from_no_ordinary_generator(tree):
    guessers = ("attacks", "audit")  # they guess, and hold no secret
    # Made-up pictures; other people's models; an attack.
    others = ("mole.sources.bundled", "mole.torch.chance", "mole.demo.eight_images")
    for module in tree.files:
        if room_of(module) not in guessers and module not in others:
            assert "np.random" not in tree.code_of(module), module
    for module in tree.modules_in("provider"):
        assert not {"random", "numpy.random"} & tree.foreign_imports(module), module


def test_modules_are_loaded_by_a_computed_name_only_where_that_is_the_point(tree):
    """Such an import escapes the table: the package's lazy names, the lazy commands, a user's own model."""
    ways = re.compile(
        r"import_module\(|__import__|run_module|run_path|sys\.modules\[(?!__name__)|(?<!\.)\b(exec|eval)\("
    )
    loaders = [module for module in tree.files if ways.search(tree.code_of(module))]
    assert {*loaders} <= {"mole", "mole.cli.app", "mole.torch", "mole.torch.models"}


def test_no_two_library_files_have_one_name():
    """A command may have the name of what it calls."""
    library = [
        file for file in SOURCE.rglob("*.py") if "cli" not in file.parts and file.name != "__init__.py"
    ]
    names = [file.name for file in library]
    assert sorted(names) == sorted({*names})
    assert not [file for file in library if file.stem == file.parent.name]


def test_what_reports_progress_is_said_once(tree):
    said = [name for name in tree.files if "Callable[[int, int], None]" in tree.code_of(name)]
    assert said == ["mole.progress"]


def roots_of(tree: Tree, module: str) -> set[str]:
    return {name.split(".")[0] for name in tree.foreign_imports(module)}
