"""Found by torch as an extension: torch calls `begin` at the end of `import torch`.

Runs in whatever Python the program starts, so a Python without compilescope is left in peace.
"""

import contextlib


def begin():
    try:
        from compilescope.capture import autoload
    except ImportError:
        return
    # The program comes first. A run without events says that capture did not begin.
    with contextlib.suppress(Exception):
        autoload.begin()
