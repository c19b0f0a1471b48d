"""What this machine's processor can do, where PyTorch's own code gets it wrong.

Some virtual machines report a processor with AMX and do not let it be used: a product of 16-bit numbers
then kills the process with an illegal instruction. Told to use older instructions, PyTorch works there too.
It reads that when it is loaded, so the variable has to be set before.
"""

import os
import subprocess
import sys

import pytest

PRODUCTS = """
import torch
for dtype in (torch.bfloat16, torch.float16):
    square, image = torch.ones(64, 64, dtype=dtype), torch.ones(2, 3, 8, 8, dtype=dtype)
    square @ square
    torch.nn.functional.conv2d(image, image)
"""
OLDER_INSTRUCTIONS = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
CANNOT = "MOLE_TESTS_WITHOUT_16_BITS"  # how the workers of a run are told

needs_16_bits = pytest.mark.skipif(
    CANNOT in os.environ, reason="PyTorch's product of 16-bit numbers kills the process on this processor"
)


def prepare(config: pytest.Config, program: str = PRODUCTS) -> None:
    """Set what products of 16-bit numbers need here: once per run, before workers start and inherit it."""
    if not hasattr(config, "workerinput"):
        os.environ.update(variables_for(program))


def variables_for(program: str) -> dict[str, str]:
    """Environment variables with which a Python program gets through, or that say that it cannot."""
    for variables in ({}, OLDER_INSTRUCTIONS):
        if not _is_killed(program, variables):
            return variables
    return {CANNOT: "1"}


def _is_killed(program: str, variables: dict[str, str]) -> bool:
    """Whether a signal ends it. An ordinary error, such as a missing PyTorch, is the tests' to show."""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, check=False
    )
    return done.returncode < 0
