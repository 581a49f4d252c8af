"""Writes the tables by which rules and fixes are found without importing them.

    python tests/index_json.py

They are made of what each rule and each fix says of itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import msgspec

from compilescope.base.plugins import carried, public_modules
from compilescope.change.fixes import catalogue
from compilescope.knowledge.rules import breaks, programs, recompiles
from compilescope.knowledge.rules.causes import explanations
from compilescope.knowledge.rules.causes.rule import BreakRule, GuardRule, ProgramRule

RENEW = "run: python tests/index_json.py"


def ready() -> dict[Path, bytes]:
    """Each file with its text: a rule or a fix a line, so that a change can be read."""
    rules = {
        "breaks": _rules(breaks, BreakRule),
        "recompiles": _rules(recompiles, GuardRule),
        "programs": _rules(programs, ProgramRule),
    }
    packages = ", ".join(f'"{name}": {lines}' for name, lines in rules.items())
    fixes = (
        (name, entry)
        for module in catalogue._modules()
        for name, entry in catalogue.indexed(module).items()
    )
    return {
        explanations.INDEX: f"{{{packages}}}\n".encode(),
        catalogue.INDEX: f"{_lines(fixes)}\n".encode(),
    }


def _rules(package: ModuleType, kind: type[BreakRule | GuardRule | ProgramRule]) -> str:
    rules = {
        name: carried(f"{package.__name__}.{name}", "RULE", kind)[0]
        for name in public_modules(package)
    }
    return _lines(
        (name, rules[name].needs if isinstance(rules[name], GuardRule) else ())
        for name in sorted(rules, key=lambda name: rules[name].order)
    )


def _lines(rows: Iterable[tuple[str, object]]) -> str:
    told = ",\n".join(f'"{name}": {msgspec.json.encode(row).decode()}' for name, row in rows)
    return f"{{\n{told}\n}}"


if __name__ == "__main__":
    for path, text in ready().items():
        path.write_bytes(text)
