"""A protected delivery, for the files that audit it."""

import pytest

from clothes import made, write_clothes
from mole.attacks.tools import trained_decoder


@pytest.fixture(scope="module")
def clothes(tmp_path_factory):
    """Images and a front. While they are used, an attacker learns for a short time only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained_decoder, "MOST_STEPS", 10)
        yield write_clothes(tmp_path_factory.mktemp("clothes"))


@pytest.fixture(scope="module")
def protected(clothes, tmp_path_factory):
    return made(clothes, tmp_path_factory.mktemp("made") / "one")
