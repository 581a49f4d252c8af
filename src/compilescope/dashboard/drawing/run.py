"""What worker processes draw of one run: its page, its report as a file, the jobs of a sweep."""

from __future__ import annotations

from pathlib import Path

from compilescope.dashboard.addresses import RegistryPages, jobs_address
from compilescope.model.run import read_run
from compilescope.registry.pages import find_pages
from compilescope.report.document import report_document
from compilescope.report.render.page import PageParts, page_parts, to_page
from compilescope.report.render.structured import to_json
from compilescope.report.section import Reading


def draw_run(folder: Path) -> PageParts:
    """The report, inside the dashboard's frame."""
    run = read_run(folder)
    jobs_at = jobs_address(folder.name)
    reading = Reading(run, full=True, page=True, pages=RegistryPages(), jobs_at=jobs_at)
    return page_parts([report_document(reading)])


def report_file(folder: Path, form: str) -> bytes:
    """What `compilescope report` writes: `html` or `json`. Its links lead out of the dashboard."""
    page = form == "html"
    reading = Reading(read_run(folder), full=True, page=page, pages=find_pages())
    documents = [report_document(reading)]
    text = to_page(documents) if page else to_json(documents, [reading.digest])
    return text.encode()
