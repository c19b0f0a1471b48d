"""Keys and noise are the same in every run of the tests, but for those that ask for fresh ones."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mole
from mole.protection import FreshNoise, channel
from mole.provider.keys import key
from same_draws import DRAWS, SameDraws

SHAPE = (1, 4, 4)


@pytest.fixture(autouse=True)
def _not_while_exploring():
    if key.secrets is not DRAWS:
        pytest.skip("keys and noise come from the operating system")


def drawn(name, *contents):
    """Two seeds for each content, under a name."""
    draws = SameDraws()
    with draws.named(name):
        found = {}
        for content in contents:
            with draws.about(content):
                found[content] = [draws.token_bytes(8), draws.token_bytes(8)]
    return found


def test_a_name_gives_the_same_seeds_and_another_name_others():
    assert drawn("one", b"a") == drawn("one", b"a") != drawn("other", b"a")
    assert drawn(None, b"a") != drawn(None, b"a")
    first, second = drawn("one", b"a")[b"a"]
    assert first != second


def test_what_comes_first_changes_nothing_for_the_rest():
    assert drawn("one", b"a", b"b") == drawn("one", b"b", b"a")
    assert drawn("one", b"a", b"b")[b"a"] != drawn("one", b"a", b"b")[b"b"]


def test_a_thread_keeps_to_what_it_works_on():
    with DRAWS.named("one"), DRAWS.about(b"a"):
        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(DRAWS.token_bytes, 8).result()
        here = DRAWS.token_bytes(8)
    with DRAWS.named("one"):
        assert DRAWS.token_bytes(8) == beside != here


def test_keys_and_noise_follow_from_the_name():
    found = []
    for name in ("one", "one", "other"):
        with DRAWS.named(name):
            found.append((mole.MorphKey.generate(SHAPE).fingerprint, FreshNoise().normals(3)))
    (one, noise), (again, same), (other, others) = found
    assert one == again != other
    assert np.array_equal(noise, same)
    assert not np.array_equal(noise, others)
    assert channel.secrets is DRAWS


@pytest.fixture(scope="module")
def of_the_file():
    return mole.MorphKey.generate(SHAPE).fingerprint


@pytest.mark.parametrize("turn", [1, 2])
def test_a_fixture_draws_by_itself(of_the_file, turn):
    """Whichever test asked for it first."""
    with DRAWS.named("tests/documents/test_same_draws.py of_the_file 0"):
        assert of_the_file == mole.MorphKey.generate(SHAPE).fingerprint
    assert of_the_file != mole.MorphKey.generate(SHAPE).fingerprint


def test_a_test_draws_under_its_own_name():
    own = mole.MorphKey.generate(SHAPE).fingerprint
    with DRAWS.named("tests/documents/test_same_draws.py::test_a_test_draws_under_its_own_name "):
        assert own == mole.MorphKey.generate(SHAPE).fingerprint


@pytest.mark.fresh_draws
def test_unless_it_asks_for_fresh_draws():
    assert DRAWS.name is None
