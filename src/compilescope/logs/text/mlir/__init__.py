"""MLIR modules as text: what is in them, and where in the program it came from."""
