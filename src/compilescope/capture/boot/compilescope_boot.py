"""Found by torch as an extension: torch calls `begin` at the end of `import torch`.

Found by Python as well, through a sitecustomize: it calls `watch_end` before the program begins.

Runs in whatever Python the program starts, so a Python without compilescope is left in peace.
"""

import atexit
import contextlib
import sys


def begin():
    try:
        from compilescope.capture import autoload
    except ImportError:
        return
    # The program comes first. A run without events says that capture did not begin.
    with contextlib.suppress(Exception):
        autoload.begin()


def watch_end():
    """Have the exception written that may end the program before it imports torch."""
    atexit.register(_note_end)


def _note_end():
    error = getattr(sys, "last_value", None)
    # An import may evaluate strings, and whoever does so makes Python forget that it was
    # interrupted: it would leave with status 1 and not by the signal.
    if error is None or isinstance(error, KeyboardInterrupt):
        return
    # Whatever happens here, the program has ended as it did.
    with contextlib.suppress(Exception):
        from compilescope.capture import ending

        ending.note_uncaught()
