"""What is wrong with a captured graph, if anything: a task for the sandbox.

The answer is the `shown` of a record, by which candidates are judged from then on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from compilescope.minify.graph.catching import shown_failure
from compilescope.minify.graph.record import RECORD, Record
from compilescope.minify.graph.trial import EAGER_RAN, script_names
from compilescope.minify.script.setting import Setting, Shown
from compilescope.minify.script.writing import script_text

TASK = f"{__name__}:identify"


def identify(payload: dict[str, Any]) -> dict[str, Any] | None:
    """`shown` as JSON, or None where nothing is wrong. It raises where eager code fails too."""
    folder = Path(payload["folder"])
    record = msgspec.json.decode((folder / RECORD).read_bytes(), type=Record)
    kind = "failure" if payload["predicate"] == "crash" else "difference"
    shown = msgspec.structs.replace(record.shown, kind=kind, expected=())
    text = script_text(record.graph, record.setting, shown, torch_version=record.torch)
    saved = [each.saved for each in record.graph.inputs if each.fill == "saved"]
    names = script_names(text, str(folder), record, saved)
    wanted = names["eager"]()
    # For the sandbox, should this process die.
    sys.stdout.write(f"{EAGER_RAN}\n")
    sys.stdout.flush()
    if kind == "failure":
        found = _failure(names, record.setting)
    else:
        found = _difference(names, wanted, record.setting)
    return None if found is None else msgspec.to_builtins(found)


def _failure(names: dict[str, Any], setting: Setting) -> Shown | None:
    try:
        names["compiled"]()
    except Exception as error:  # The border to torch: that is what is looked for.
        return shown_failure(error, setting)
    return None


def _difference(names: dict[str, Any], wanted: list[Any], setting: Setting) -> Shown | None:
    from compilescope.diff.judging import judge

    found, exact = names["compiled"](), names["exact"]()
    right = exact if exact is not None and len(exact) == len(wanted) else [None] * len(wanted)
    for number, (ours, its, true) in enumerate(zip(wanted, found, right, strict=False)):
        seen = names["difference"](ours, its, true)
        if seen is None:
            continue
        if seen[0] != "structure" and judge(ours, its, true).verdict != "fail":
            continue
        of = f" of {setting.model}" if setting.model else ""
        return Shown(
            "difference",
            seen[0],
            f"With {setting.backend.name}, this graph{of} gives different results than without it.",
            (f"In the program, result {number} was {seen[1]}.",),
        )
    return None
