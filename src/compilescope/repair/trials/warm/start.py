"""The script that the warm process is started with, by its path.

A forked child comes back from `serve` with its program, and runs it to its end here.
"""

import gc
import os
import sys

# Most of what an import makes stays: collecting in between is a fifth of its time.
gc.disable()
if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]

from compilescope.repair.trials.warm import fork_server  # noqa: E402
from compilescope.repair.trials.warm.program_end import run_to_the_end  # noqa: E402

program = fork_server.serve(int(sys.argv[1]))
if program is not None:
    run_to_the_end(program, fork_server.known_modules, fork_server.tell_imported)
