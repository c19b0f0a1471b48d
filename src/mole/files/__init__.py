"""Files on disk: layers as sealed safetensors, and writing without half-written results."""

from mole.files.layers import load, save

__all__ = ["load", "save"]
