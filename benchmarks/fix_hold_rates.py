"""How often each fix holds once it is proposed: the table in repair/search/hold_rates.py.

    python benchmarks/fix_hold_rates.py [--results FILE] [PROGRAM]...

Searches every program of tests/fixes/programs (or those that are given), all trials in forks of one
warm process, and prints the table. `--results` appends a line of JSON for each program, and leaves
out those that the file has already, so that a long run can be taken up again.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

from compilescope.base.errors import ToolError
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.rounds import search
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.instrument.recorder.target import Target

PROGRAMS = Path(__file__).parent.parent / "tests" / "fixes" / "programs"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path)
    parser.add_argument("programs", nargs="*", type=Path)
    given = parser.parse_args()
    known = _read(given.results)
    with WarmParent() as warm:
        for path in given.programs or sorted(PROGRAMS.glob("*.py")):
            if path.stem not in known:
                known[path.stem] = _searched(path, warm)
                if given.results is not None:
                    with given.results.open("a") as file:
                        file.write(json.dumps(known[path.stem]) + "\n")
    _print(list(known.values()))


def _searched(path: Path, warm: WarmParent) -> dict[str, Any]:
    words = [str(path), *_arguments(path)]
    begun = time.monotonic()
    try:
        outcome = search(
            Target("script", tuple(words)), SearchOptions(timed=False, limit_s=120), warm
        )
    except ToolError as error:
        return {"program": path.stem, "error": str(error), "fixes": []}
    return {
        "program": path.stem,
        "verdict": outcome.verdict,
        "seconds": round(time.monotonic() - begun, 1),
        "fixes": [[each.fix, each.verdict, each.kept, each.reason] for each in outcome.attempts],
    }


def _arguments(path: Path) -> list[str]:
    for line in path.read_text().splitlines():
        if line.startswith("# args:"):
            return line.removeprefix("# args:").split()
    return []


def _read(results: Path | None) -> dict[str, dict[str, Any]]:
    if results is None or not results.exists():
        return {}
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    return {row["program"]: row for row in rows}


def _print(rows: list[dict[str, Any]]) -> None:
    tried: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for row in rows:
        for name, verdict, *_ in row["fixes"]:
            if name:
                tried[name] += 1
                held[name] += verdict == "verified"
    print("HELD_OF_TRIED: dict[str, tuple[int, int]] = {")
    for name in sorted(tried):
        print(f'    "{name}": ({held[name]}, {tried[name]}),')
    print("}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"# {len(rows)} programs, {used.ru_utime + used.ru_stime:.0f} s of CPU time")


if __name__ == "__main__":
    main()
