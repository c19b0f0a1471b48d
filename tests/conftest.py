"""What every test has."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "mole", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mole")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)
