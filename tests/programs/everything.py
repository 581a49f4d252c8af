"""All that steady.py does, and then all that failing.py does: one process in place of two."""

try:
    import steady  # noqa: F401
except SystemExit as left:
    print("\nsteady left with", left.code)
import failing  # noqa: F401
