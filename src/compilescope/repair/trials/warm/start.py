"""Run by its path: the warm process, and each program that it forks a child for."""

import gc
import os
import sys

# Most of what an import makes stays: collecting in between is a fifth of its time.
gc.disable()
if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]

from compilescope.repair.trials.warm import serving  # noqa: E402
from compilescope.repair.trials.warm.finishing import run_to_the_end  # noqa: E402

program = serving.serve(int(sys.argv[1]))
if program is not None:
    run_to_the_end(program, serving.known_modules, serving.tell_imported)
