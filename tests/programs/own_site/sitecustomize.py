"""A user's own; ours must let it run."""

import sys

print("my own sitecustomize", file=sys.stderr)
