"""Runs a program whose steps wait for their turn: of `benchmarks/tune.py`.

    python tune_turn.py READ WRITE clock|marks PROGRAM [ARGS]...

For its turn, a byte is written, and one is waited for. So two programs start and compile at the
same time, and yet measure their steps by turns. `clock`: the program times its own steps, and waits
each time it reads `time.perf_counter`. `marks`: it has a mark at each step, and windows of steps
are timed here, and printed.
"""

import atexit
import builtins
import math
import os
import runpy
import sys
import time

_MARK = "__compilescope_step__"
_SETTLED = 20
"""Steps before the first window. Chosen: CUDA graphs are recorded by then."""
_WINDOW_S = 0.1
_WINDOWS = 40
_clock = time.perf_counter
_read, _write = int(sys.argv[1]), int(sys.argv[2])
_waited = 0.0


def _perf_counter() -> float:
    global _waited
    now = _clock()
    if sys._getframe(1).f_globals.get("__name__") != "__main__":
        return now  # torch reads it too.
    here = now - _waited
    _take_turn()
    _waited += _clock() - now
    return here


def _take_turn() -> None:
    os.write(_write, b".")
    os.read(_read, 1)


class _Steps:
    def __init__(self) -> None:
        self._passed = self._in_window = 0
        self._wanted = 1
        self._begun = 0.0
        self._times: list[float] = []

    def pass_one(self, number: int) -> None:
        self._passed += 1
        if self._passed < _SETTLED:
            return
        if self._passed == _SETTLED:
            atexit.register(self.tell)
        else:
            self._in_window += 1
            if self._in_window < self._wanted:
                return
            _wait_for_device()
            took = _clock() - self._begun
            self._times.append(took * 1000 / self._in_window)
            self._wanted = max(1, math.ceil(_WINDOW_S / (took / self._in_window)))
        if len(self._times) == _WINDOWS:
            self.tell()
            os._exit(0)  # What comes after is of no interest.
        _wait_for_device()
        _take_turn()
        self._in_window, self._begun = 0, _clock()

    def tell(self) -> None:
        print("\nstep_ms", *self._times[1:], flush=True)
        self._times = []


def _wait_for_device() -> None:
    torch = sys.modules["torch"]
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


if __name__ == "__main__":
    if sys.argv[3] == "marks":
        setattr(builtins, _MARK, _Steps().pass_one)
    else:
        time.perf_counter = _perf_counter
    sys.argv = sys.argv[4:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
