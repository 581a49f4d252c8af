"""Runs a program whose clock stands still while it waits for its turn: of `benchmarks/tune.py`.

    python tune_turn.py READ WRITE PROGRAM [ARGS]...

Each time the program reads `time.perf_counter`, a byte is written, and one is waited for. So two
programs start and compile at the same time, and yet measure their steps by turns.
"""

import os
import runpy
import sys
import time

_clock = time.perf_counter
_read, _write = int(sys.argv[1]), int(sys.argv[2])
_waited = 0.0


def _perf_counter() -> float:
    global _waited
    now = _clock()
    if sys._getframe(1).f_globals.get("__name__") != "__main__":
        return now  # torch reads it too.
    here = now - _waited
    os.write(_write, b".")
    os.read(_read, 1)
    _waited += _clock() - now
    return here


if __name__ == "__main__":
    time.perf_counter = _perf_counter
    sys.argv = sys.argv[3:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
