"""The one place where the version stands."""

__version__ = "0.8.0"
