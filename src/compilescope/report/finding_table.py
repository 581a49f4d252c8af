"""Findings as a list that draws as a table: `run.breaks` in a notebook or at a prompt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from compilescope.knowledge.findings.recompiles import RecompiledFrame

if TYPE_CHECKING:
    from compilescope.report.blocks import Table


class FindingTable(list[Any]):
    """A plain list in all else."""

    def __init__(self, findings: Iterable[Any], what: str, root: str) -> None:
        super().__init__(findings)
        self._what = what
        """What they are, for a table without rows."""
        self._root = root

    def _repr_html_(self) -> str:
        from compilescope.report.blocks import note
        from compilescope.report.render.html import to_fragment

        return to_fragment([self._table() if self else note(f"No {self._what}.")])

    def __repr__(self) -> str:
        from compilescope.report.render.terminal import blocks_to_text

        return blocks_to_text([self._table()]).strip("\n") if self else "[]"

    def __reduce__(self) -> Any:
        return FindingTable, (list(self), self._what, self._root)

    def _table(self) -> Table:
        from compilescope.report.blocks import Table, words
        from compilescope.report.places import place

        rows = tuple(
            tuple(map(words, (place(each.file, each.line, self._root), *_cells(each))))
            for each in self
        )
        return Table(("where", "function", "what", "times"), rows, numeric=(3,))


def _cells(finding: Any) -> tuple[str, str, str]:
    """The function, what happened and how often: of a finding, or of a recompiled function."""
    if isinstance(finding, RecompiledFrame):
        what = "recompiles: " + ", ".join(cause.subject for cause in finding.causes)
        return finding.function, what, str(finding.count)
    gb_id = getattr(finding, "gb_id", None)
    what = f"{gb_id} {finding.title}" if gb_id else finding.title
    return finding.function, what, str(finding.count)
