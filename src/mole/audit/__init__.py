"""The audit: attacks a delivery, compares what they find with the truth, and writes it down.

    report = mole.audit("delivery", key=key, layer=layer, truth="photos")
    report.save("audit")

The package and its function share a name, and Python binds `mole.audit` to the package as soon as one of
its modules is imported. So the package itself can be called: `mole.audit(...)` works whatever was imported
before.
"""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mole.errors import MissingExtraError

if TYPE_CHECKING:
    from mole.audit.report import Report

if any(find_spec(name) is None for name in ("jinja2", "matplotlib", "scipy", "skimage", "sklearn")):
    raise MissingExtraError("mole.audit needs more packages", "audit")


class _CallablePackage(ModuleType):
    """A package that is also the function of its name."""

    def __call__(self, *arguments: Any, **options: Any) -> "Report":
        """Attack a delivery: see `mole.audit.run.audit`."""
        from mole.audit.run import audit  # noqa: PLC0415  (loads SciPy and scikit-image)

        return audit(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
