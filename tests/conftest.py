"""What every test has."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "mole", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mole")


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Headless Chromium."""
    from playwright.sync_api import sync_playwright

    from browsers import CHROMIUM

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)
