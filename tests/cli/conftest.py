"""What several files about the command line share."""

from pathlib import Path

import pytest

from mistakes import make_place


@pytest.fixture(scope="session")
def mistaken_place(tmp_path_factory) -> Path:
    """All that both roles have, and much that they should not have; whoever uses it leaves it as it was."""
    return make_place(tmp_path_factory.mktemp("place"))
