"""Addresses of the dashboard's pages, for whoever draws a link."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlencode

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.pages import Pages
from compilescope.knowledge.registry.table import normal_id


class MissingPage(ToolError):
    """What an address names is not there: the answer's status says so too."""


def run_address(run: str) -> str:
    return f"/runs/{_quoted(run)}"


def jobs_address(run: str) -> str:
    """Of a sweep."""
    return f"{run_address(run)}/jobs"


def fix_address(run: str) -> str:
    """Of a search for fixes."""
    return f"/fixes/{_quoted(run)}"


def device_address(name: str) -> str:
    return f"/devices/{_quoted(name)}"


def compare_address(before: str, after: str) -> str:
    return f"/compare?{urlencode({'a': before, 'b': after}, errors='replace')}"


def overlay_address(runs: Iterable[str]) -> str:
    """Of several runs over each other."""
    return f"/compare/runs?{urlencode([('run', run) for run in runs], errors='replace')}"


def start_address(command: str, **fields: str) -> str:
    """The form of a command, filled in."""
    query = urlencode({name: text for name, text in fields.items() if text}, errors="replace")
    return f"/start/{command}" + (f"?{query}" if query else "")


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="replace")


class RegistryPages(Pages, frozen=True):
    """Graph breaks are explained on the dashboard's own pages."""

    def url(self, gb_id: str | None) -> str:
        known = normal_id(gb_id) if gb_id else None
        return f"/registry/{known}" if known else ""

    def hint(self, gb_id: str | None) -> str:
        known = normal_id(gb_id) if gb_id else None
        return f"{known} in the registry" if known else ""
