"""The script that the warm process is started with, by its path.

A forked child comes back from `serve` with its program, and runs it to its end here.
"""

import gc
import json
import os
import sys

# Most of what an import makes stays: collecting in between is a fifth of its time.
gc.disable()
if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]

from compilescope.change.repair.trials.warm.fork_server import run_to_the_end, serve  # noqa: E402

program = serve(int(sys.argv[-1]), json.loads(sys.argv[1]))
if program is not None:
    run_to_the_end(program)
