"""Bytes and places: atomic writes, locations, stores, checked files, age. Knows nothing of the scheme."""
