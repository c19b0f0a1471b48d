"""The paper's section 3: shapes, first layers, cores, morphing, augmented layers. NumPy only, no I/O."""
