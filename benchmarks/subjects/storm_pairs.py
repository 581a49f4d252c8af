"""A storm in which capture comes and goes: `storm_pairs.py KIND WARM COUNT BACKEND`.

After WARM compilations, COUNT are made in groups, in turns with and without hooks, all in one
process: both meet the same cache entries, caches and neighbours. The first of a group is left out,
for what putting hooks on and taking them off has moved. The file named by BENCHMARK_OUT gets the
CPU seconds of each of the others, `with` hooks and `without`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from time import process_time
from typing import Any

import storm
import torch

import compilescope

_GROUP = 6


def main(kind: str, warm: str, count: str, backend: str) -> None:
    torch.set_num_threads(1)
    storm.raise_limits()
    torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(8))
    call = storm.KINDS[kind](backend)
    number = int(warm)
    with tempfile.TemporaryDirectory() as folder:
        with compilescope.capture(dir=folder):
            for each in range(number):
                call(each)
        spent: dict[str, list[float]] = {"without": [], "with": []}
        for group in range(2 * max(int(count) // (2 * _GROUP), 1)):
            # A pair begins with the other one each time.
            way = ("without", "with")[(group + group // 2) % 2]
            capture: Any = compilescope.capture(dir=folder)
            with capture if way == "with" else contextlib.nullcontext():
                call(number)
                for each in range(number + 1, number + _GROUP):
                    start = process_time()
                    call(each)
                    spent[way].append(process_time() - start)
            number += _GROUP
    with open(os.environ["BENCHMARK_OUT"], "w") as file:
        json.dump(spent, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
