"""Runs a repro script in this process and writes down the violations that it leads to.

python -m compilescope.minify.script.replay SCRIPT OUT
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import msgspec


def main(script: str, out: str) -> None:
    from compilescope.backends.mock.refusal import ConstraintError
    from compilescope.minify.violations import facts

    found = []
    sys.argv = [script]
    shown = runpy.run_path(script, run_name="__repro__")
    try:
        shown["compiled"]()
    except ConstraintError as error:
        found = list(facts(error.violations))
    Path(out).write_bytes(msgspec.json.encode(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
