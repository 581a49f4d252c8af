"""Found by torch as an extension: torch calls `begin` at the end of `import torch`.

Runs in whatever Python the program starts, so a Python without compilescope is left in peace.
"""


def begin():
    try:
        from compilescope.capture import autoload
    except ImportError:
        return
    try:
        autoload.begin()
    except Exception:
        # The program comes first. A run without events says that capture did not begin.
        pass
