"""Differential fuzzing of the small compiler: random graphs compared with PyTorch's eager mode.

    python benchmarks/mini_fuzz.py --count 10000

Each graph runs in the interpreter with all passes, with none, and with each one left out; and as
generated code with all passes and with none. Prints every difference beyond rounding with its seed;
exit status 1 if there is one. `--only 1234` tries one seed again and prints the graph.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "backends" / "mini"))

from fuzzing import Fuzzer, make_program

from compilescope.backends.mini.library import MiniError, load_library
from compilescope.backends.mini.translation import translate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--batch", type=int, default=25, help="graphs for one call of the compiler")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--flags", default="", help="for generated code, in place of the usual")
    parser.add_argument("--no-generated", action="store_true", help="the interpreter alone")
    parser.add_argument("--only", type=int, help="one seed, with its graph")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.only is not None:
        asked.start, asked.count, asked.batch = asked.only, 1, 1
        program = make_program(asked.only)
        print(program.module.graph)
        print(translate(program.module, program.inputs).text)
    return _run(asked)


def _run(asked: argparse.Namespace) -> int:
    trials: collections.Counter[str] = collections.Counter()
    wrong: dict[int, list[str]] = {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as cache:
        for first in range(asked.start, asked.start + asked.count, asked.batch):
            seeds = range(first, min(first + asked.batch, asked.start + asked.count))
            # A cache for each batch: thousands of libraries would fill the disk.
            fuzzer = Fuzzer(load_library(), str(Path(cache) / str(first)), asked.flags)
            found = list(fuzzer.interpreted(seeds))
            trials["graphs"] += fuzzer.programs
            trials["not translatable"] += fuzzer.untranslatable
            if not asked.no_generated:
                try:
                    found += fuzzer.compiled(seeds)
                except MiniError as error:  # On a busy machine the C++ compiler may take too long.
                    print(f"seeds from {first}: {error}", file=sys.stderr, flush=True)
                    trials["not compiled"] += fuzzer.programs
            for trial in found:
                trials[trial.setting.partition(",")[0]] += 1
                for problem in trial.problems:
                    print(f"seed {trial.seed}, {trial.setting}: {problem}", flush=True)
                    wrong.setdefault(trial.seed, []).append(trial.setting)
            if time.monotonic() - started > asked.seconds:
                break
            if (first - asked.start) // asked.batch % 20 == 0:
                print(f"... {dict(trials)}", file=sys.stderr, flush=True)
    print(
        f"{trials['graphs']} graphs, {trials['interpreter']} runs of the interpreter, "
        f"{trials['generated code']} of generated code: {len(wrong)} differ beyond rounding "
        f"({time.monotonic() - started:.0f} s)"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
