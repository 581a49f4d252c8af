"""What axe-core finds on the page that a browser shows."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import pytest

_RUN = (
    "const done = arguments[arguments.length - 1];"
    "axe.run(document, {resultTypes: ['violations']})"
    ".then((found) => done(found.violations), (error) => done(String(error)));"
)


@cache
def _script() -> str:
    """The script alone: the package around it would start another browser."""
    pytest.importorskip("axe_playwright_python", reason="no axe-core: pip install -e .[dev]")
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def grave_findings(driver: Any) -> list[str]:
    """What is serious or critical, a line each."""
    # A page's policy forbids foreign scripts; what the driver runs is not bound by it.
    driver.execute_script(_script())
    found = driver.execute_async_script(_RUN)
    assert isinstance(found, list), found
    grave = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    return [line for rule in grave for line in _lines(rule)]


def _lines(rule: dict[str, Any]) -> list[str]:
    return [
        f"{rule['id']} ({rule['impact']}): {' '.join(map(str, node['target']))} "
        f"{node['html'][:100]} {node['failureSummary']}"
        for node in rule["nodes"][:10]
    ]
