"""The package as a function, light to import, and what it says where its extra is missing."""

import subprocess
import sys

import pytest

from deliveries import make_key, make_layer, write_npz
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def delivery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    source = open_source(str(write_npz(folder / "data.npz", train=20, test=0)))
    deliver(source, make_layer(), make_key(), LocalStore(folder / "delivery"))
    return folder / "delivery"


@pytest.mark.parametrize("imported", ["mole.audit", "mole.audit.run", "mole.audit.report"])
def test_the_package_can_be_called_whatever_was_imported_before(delivery, imported):
    program = (
        f"import sys, {imported}\n"
        "report = mole.audit(sys.argv[1], budget=-1)\n"
        "import mole.audit.run\n"
        "again = mole.audit(sys.argv[1], budget=-1)\n"
        "print(len(report.attacks), report.warnings == again.warnings, mole.audit.run.audit.__name__)"
    )
    assert run(program, str(delivery)) == "18 True audit"


def test_importing_the_package_loads_no_science():
    program = (
        "import sys, mole.audit\n"
        "print({'scipy', 'matplotlib', 'skimage', 'jinja2', 'numpy'} & {*sys.modules})"
    )
    assert run(program) == "set()"


def test_a_report_is_made_without_drawing():
    assert run("import sys, mole.audit.run\nprint('matplotlib' in sys.modules)") == "False"


def test_a_missing_extra_is_named():
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import mole\ntry:\n    import mole.audit\nexcept mole.MoleError as error:\n    print(error)"
    )
    assert run(program) == "mole.audit needs more packages: in the project's folder, pip install '.[audit]'"
