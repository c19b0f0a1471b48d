"""The whole story on a small real data set, as `mole demo` tells it."""

import mole.torch  # noqa: F401  (says what to do where PyTorch is missing)
