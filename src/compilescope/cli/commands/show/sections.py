"""One section of a run in detail, for people and for machines: `show --section`."""

from __future__ import annotations

from typing import Any

from compilescope.errors import ToolError
from compilescope.model.run import Run
from compilescope.report.blocks import Document

DETAILED = ("guards", "graphs", "constraints")
"""Sections that show more here than in the report."""


def section_of(run: Run, name: str) -> tuple[Any, Document]:
    """Its JSON and its document."""
    title, root = f"compilescope {run.header.run}", run.header.root
    head = {"run": run.header.run, "type": name}
    if name == "guards":
        from compilescope.analysis.break_reasons import break_reasons, graph_count
        from compilescope.analysis.guarded import guarded_graphs
        from compilescope.report.guards import guards_document

        guarded, breaks, number = guarded_graphs(run), break_reasons(run), graph_count(run)
        counts = {"graph_count": number, "graph_break_count": len(breaks)}
        value = {**head, **counts, "break_reasons": breaks, "graphs": guarded}
        return value, guards_document(title, guarded, root, breaks, number)
    if name == "graphs":
        from compilescope.analysis.dynamo_graphs import captured_graphs
        from compilescope.report.guards import graphs_document

        captured = captured_graphs(run)
        return {**head, "graphs": captured}, graphs_document(title, captured, root)
    from compilescope.report.section import Reading

    if name == "constraints":
        from compilescope.analysis.violations import recorded_violations
        from compilescope.report.sections.violations import violations_document

        found = recorded_violations(run)
        return {**head, "violations": found}, violations_document(title, Reading(run))
    document = _of_report(Reading(run, full=True), name)
    return {**head, "sections": document.parts}, document


def _of_report(reading: Any, name: str) -> Document:
    from compilescope.report.blocks import Paragraph, Part, words
    from compilescope.report.document import all_sections, report_document

    known = [section.id for section in all_sections() if section.id != "causes"]
    if name not in known:
        names = ", ".join(dict.fromkeys([*DETAILED, *known]))
        raise ToolError(f"There is no section {name}.", hint=f"The sections: {names}.")
    document = report_document(reading, only=name)
    if document.parts:
        return document
    nothing = Paragraph(words(f"This run has nothing to show under {name}."))
    return Document(document.title, document.subtitle, (Part(name, "", (nothing,)),))
