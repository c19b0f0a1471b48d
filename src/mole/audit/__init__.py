"""The audit: attacks a delivery, compares what they find with the truth, and writes it down."""

from importlib.util import find_spec

from mole.errors import MissingExtraError

if any(find_spec(name) is None for name in ("jinja2", "matplotlib", "scipy", "skimage", "sklearn")):
    raise MissingExtraError("mole.audit needs more packages: pip install 'morphed-learning[audit]'")
