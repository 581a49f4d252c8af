"""The first advice of every finding, applied and run: how many of how many hold.

    python benchmarks/advice.py [NAME ...] [--corpus zoo ...] [--json] [--verbose]

Corpora: zoo, fixes (the programs for the fixes), rules (the rules' own examples), registry (the
examples of graph breaks), models (families of transformers; needs the extra `models`, and half an
hour). NAME picks programs. docs/inside/advice.md says what is counted, and with what result.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import traceback
from pathlib import Path
from typing import Any

# In place of this folder, in which this very file would be the module `advice`.
sys.path[0] = str(Path(__file__).resolve().parent.parent / "tests")

from advice.corpora import CORPORA  # noqa: E402
from advice.running import WarmProcess  # noqa: E402
from advice.tally import HEAD, Row, reasons, rows_by  # noqa: E402
from advice.trying import Trial, Tried  # noqa: E402


def main() -> None:
    asked = _arguments()
    tried: list[Tried] = []
    with WarmProcess() as warm:
        for corpus in asked.corpus:
            for program in CORPORA[corpus]():
                if asked.names and program.name not in asked.names:
                    continue
                print(f"\r{corpus}/{program.name:50.50}", end="", file=sys.stderr)
                try:
                    found = Trial(warm, program).tried()
                except Exception:  # One program must not end the count of the others.
                    print(f"\n{program.name} could not be tried:", file=sys.stderr)
                    traceback.print_exc()
                    continue
                tried += found
                if asked.verbose:
                    _tell(found)
    print(file=sys.stderr)
    if asked.json:
        print(json.dumps([_plain(one) for one in tried], indent=1))
    else:
        _print(tried)


def _arguments() -> argparse.Namespace:
    words = __doc__ or ""
    parser = argparse.ArgumentParser(description=words.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--corpus", nargs="+", choices=list(CORPORA))
    parser.add_argument("--json", action="store_true", help="every finding, as JSON")
    parser.add_argument("--verbose", action="store_true", help="each finding as it is tried")
    asked = parser.parse_args()
    asked.corpus = asked.corpus or [name for name in CORPORA if name != "models"]
    return asked


def _plain(one: Tried) -> dict[str, Any]:
    found = dataclasses.asdict(one)
    advice = one.advice
    found["advice"] = {name: getattr(advice, name) for name in advice.__struct_fields__}
    return found


def _tell(found: list[Tried]) -> None:
    for one in found:
        print(f"{one.label} | {one.advice.fix} | {one.result} | {one.words}", flush=True)


def _print(tried: list[Tried]) -> None:
    _table(rows_by(tried, lambda one: one.corpus))
    print()
    _table(rows_by(tried, lambda one: one.rule if one.own else "installed packages"))
    print("\nWithout a diff:")
    for reason, count in reasons(tried).most_common():
        print(f"{count:5}  {reason}")
    wrong = [one for one in tried if one.result not in ("held", "no diff")]
    if wrong:
        print("\nNot held:")
        _tell(wrong)


def _table(rows: list[Row]) -> None:
    lines = [HEAD, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    for line in lines:
        first = line[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        print("  ".join([first, *rest]).rstrip())


if __name__ == "__main__":
    main()
