"""The provider's secret. Nothing on the developer's side imports this package."""

from mole.provider.keys.key import MorphKey

__all__ = ["MorphKey"]
