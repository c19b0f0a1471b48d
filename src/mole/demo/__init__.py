"""The whole story on a small real data set, as `mole demo` tells it."""
