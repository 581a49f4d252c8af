"""Where the page of a graph break is: on the site that was set, on this machine, or nowhere yet.

The one place that decides it, for reports, explanations and the gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.settings import cache_folder, registry_site
from compilescope.knowledge.registry.table import normal_id

_PYTORCH = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"
"""As `torch._dynamo.exc.get_gbid_documentation_link` of torch 2.13 has it."""


class Pages(msgspec.Struct, frozen=True):
    """Knows the page of each id."""

    site: str = ""
    """The address of a site, with a slash at its end; empty where none was set."""
    folder: Path | None = None
    """A site that was built on this machine."""

    def url(self, gb_id: str | None) -> str:
        """The address of its page; empty where there is none."""
        known = normal_id(gb_id) if gb_id else None
        if known is None:
            return ""
        name = f"gb/{known.lower()}.html"
        if self.site:
            return self.site + name
        if self.folder is not None and (self.folder / name).is_file():
            return (self.folder / name).absolute().as_uri()
        return ""

    def hint(self, gb_id: str | None) -> str:
        """What tells more: the address of the page, else the command."""
        known = normal_id(gb_id) if gb_id else None
        return self.url(known) or (f"compilescope registry show {known}" if known else "")


def pytorch_page(gb_id: str | None) -> str:
    """PyTorch's own public page of a graph break; empty for what is no id."""
    known = normal_id(gb_id) if gb_id else None
    return f"{_PYTORCH}{known.lower()}.html" if known else ""


def default_site() -> Path:
    """Where `registry build` puts the site if it is told nothing else."""
    return cache_folder() / "site"


def find_pages(
    project_site: str | None = None, environment: Mapping[str, str] | None = None
) -> Pages:
    """The site of the environment, else of the project, else what was built on this machine."""
    wanted = registry_site(environment) or project_site or ""
    if not wanted:
        return Pages(folder=default_site())
    return Pages(site=folder_address(wanted, "The registry's site (registry-site)"))


def folder_address(text: str, name: str) -> str:
    """An http address that can stand in any link as it is, with a slash at its end."""
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    plain = text.isascii() and text.isprintable() and not set(text) & set("\"'<>`\\()[] ?#")
    if parts.scheme not in ("http", "https") or not parts.netloc or not plain:
        raise ToolError(
            f"{name} is {text[:80]!r}, which is not the http address of a folder.",
            "Use something like https://host/path/.",
        )
    return text.rstrip("/") + "/"
