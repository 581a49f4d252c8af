"""A storm in which capture comes and goes: `storm_pairs.py KIND WARM COUNT BACKEND SECONDS`.

After WARM compilations, COUNT are made in groups, in turns with and without hooks, all in one
process: both meet the same cache entries, caches and neighbours. After SECONDS it ends early. The
median of a group passes over its first one, which pays for hooks put on or taken off. The file
named by BENCHMARK_OUT gets, for each pair of groups, the CPU seconds of a compilation `without`
hooks and `with` them, and how many compilations there were in all.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from statistics import median
from time import monotonic, process_time
from typing import Any

import storm
import torch

import compilescope

_GROUP = 6


def main(kind: str, warm: str, count: str, backend: str, seconds: str) -> None:
    end = monotonic() + float(seconds)
    torch.set_num_threads(1)
    storm.raise_limits()
    torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(8))
    call = storm.KINDS[kind](backend)
    number = int(warm)
    pairs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        with compilescope.capture(dir=folder):
            for each in range(number):
                call(each)
        while not pairs or (number < int(warm) + int(count) and monotonic() < end):
            pair = {}
            # A pair begins with the other one each time.
            for way in ("without", "with")[:: 1 if len(pairs) % 2 else -1]:
                capture: Any = compilescope.capture(dir=folder)
                with capture if way == "with" else contextlib.nullcontext():
                    pair[way] = median(seconds_of(call, number + each) for each in range(_GROUP))
                number += _GROUP
            pairs.append(pair)
    with open(os.environ["BENCHMARK_OUT"], "w") as file:
        json.dump({"pairs": pairs, "compilations": number}, file)


def seconds_of(call: storm.Call, number: int) -> float:
    start = process_time()
    call(number)
    return process_time() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
