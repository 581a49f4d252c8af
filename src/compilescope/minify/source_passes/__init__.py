"""Ways to make a Python program smaller, one a file: `PASS`."""
