"""Deliveries: what the provider hands over, made, checked and undone.

Import from the files themselves: the developer's side reads `manifest` and `artefacts`, and must not load
those that use the key.
"""
