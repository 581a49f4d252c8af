"""Python imports this at its start, before the user's program: it calls `compilescope_boot`.

Afterwards this folder is off the path, and `sitecustomize` is what it is without us: the user's
module, or none, in which case Python's own error goes to `site`, as ever.
"""

import os
import sys

import compilescope_boot

compilescope_boot.watch()
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _here]
sys.modules.pop("sitecustomize", None)

import sitecustomize  # noqa: E402, F401
