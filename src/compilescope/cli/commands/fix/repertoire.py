"""`fix --list`: the fixes that there are."""

from __future__ import annotations

from typing import Any

import msgspec

from compilescope.cli.options import print_json
from compilescope.cli.output import tell
from compilescope.fixes.catalogue import all_fixes
from compilescope.report.repertoire import RepertoireLine, repertoire_document


def list_fixes(*, as_json: bool, everything: bool) -> None:
    lines = tuple(
        RepertoireLine(
            id=fix.id,
            title=fix.title,
            rules=tuple(sorted(fix.rules)),
            kind=fix.kind,
            safe=fix.order < 100,
            why=fix.why,
        )
        for fix in all_fixes()
    )
    if as_json:
        examples = {fix.id: fix.examples for fix in all_fixes()}
        found = [
            {**msgspec.to_builtins(line), "examples": [_example(e) for e in examples[line.id]]}
            for line in lines
        ]
        print_json({"fixes": found})
        return
    tell(repertoire_document(lines), "compilescope fix --list --all", everything=everything)


def _example(example: Any) -> dict[str, str]:
    return {"bad": example.bad, "good": example.good, "note": example.note}
