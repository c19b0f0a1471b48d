"""One running playground for all files that ask it."""

from collections.abc import Iterator

import pytest

from playground_site import Site, playground


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[Site]:
    """A playground, which every test leaves as it found it."""
    with playground(tmp_path_factory.mktemp("playground")) as running:
        yield running
