"""Reading built pages in tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path


def every_file(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


@dataclass
class Links:
    """Where a page leads, and what can be led to in it."""

    targets: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path) -> Links:
        found = cls()

        class Parser(HTMLParser):
            def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
                for name, value in attrs:
                    if name in ("href", "src") and value is not None:
                        found.targets.append(value)
                    elif name == "id" and value:
                        found.ids.append(value)

        Parser().feed(path.read_text(encoding="utf-8"))
        return found
