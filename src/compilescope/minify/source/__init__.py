"""Makes a Python program smaller while it goes on showing the same cause."""
