"""Makes a Python program smaller while it still has the same break, recompile or crash."""
