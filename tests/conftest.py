"""What every test has."""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import same_draws
from chosen_layout import add_option, choose
from processors import prepare

# The same examples in every run: a run must not be red by luck. `make explore` looks for new ones.
settings.register_profile(
    "mole",
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore",
    settings.get_profile("mole"),
    max_examples=2000,
    derandomize=False,
    print_blob=True,
)
settings.load_profile("mole")


# Files that take longest, by the start of their path: they go first, so that no core is left with one at
# the end while the others have nothing to do.
LONGEST = (
    "tests/documents/test_transcript",
    "tests/provider/test_ray",
    "tests/cli/test_interrupt",
    "tests/demo/",
    "tests/audit/test_audit",
    "tests/audit/test_page",
    "tests/attacks/test_learned_inversion",
    "tests/audit/test_tiles_audit",
    "tests/documents/test_reference",
    "tests/documents/test_notebook",
    "tests/documents/test_wheel",
    "tests/documents/test_walk",
    "tests/provider/test_kill",
    "tests/documents/test_fuzz",
    "tests/provider/test_race",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(config.rootpath).as_posix()
        return next((place for place, start in enumerate(LONGEST) if path.startswith(start)), len(LONGEST))

    items.sort(key=place)  # what takes equally long keeps its order


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    choose(config)
    prepare(config)
    same_draws.install(config)
    # No test, and no process that a test starts, remembers keys in the user's own folder.
    folder = tempfile.mkdtemp(prefix="mole-state-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["MOLE_STATE"] = folder


def seed_torch() -> None:
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest) -> Iterator[None]:
    part = f"{fixturedef.argname} {getattr(request, 'param_index', 0)}"
    if fixturedef.scope != "function":  # what a test that ran before has drawn makes no difference
        seed_torch()
    with same_draws.DRAWS.named(same_draws.name_of(request.node, part)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with same_draws.DRAWS.named(same_draws.name_of(item)):
        return (yield)


def _forgotten() -> Iterator[None]:
    """Nothing that was delivered under the same key elsewhere is known for a while."""
    before = os.environ["MOLE_STATE"]
    os.environ["MOLE_STATE"] = str(Path(before).parent / f"{Path(before).name}-{secrets.token_hex(4)}")
    yield
    shutil.rmtree(os.environ["MOLE_STATE"], ignore_errors=True)
    os.environ["MOLE_STATE"] = before


@pytest.fixture(autouse=True, scope="module")
def keys_are_new_in_every_file() -> Iterator[None]:
    """Fixtures of a whole file have a ledger of their own."""
    yield from _forgotten()


@pytest.fixture(autouse=True)
def keys_are_new_in_every_test() -> Iterator[None]:
    """Every test has a ledger of its own."""
    yield from _forgotten()


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Headless Chromium."""
    from playwright.sync_api import sync_playwright

    from browsers import CHROMIUM

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(autouse=True)
def torch_draws_the_same() -> None:
    """Where PyTorch is loaded, a test that sets no seed gets the same numbers in every run, too."""
    seed_torch()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)
