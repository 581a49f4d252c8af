"""What is known of one run's folder, and the marks by which a change of it is seen."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.figures import RunFigures
from compilescope.record.header import FILE_NAME, RunHeader, read_header
from compilescope.record.labels import FILE_NAME as LABELS
from compilescope.record.labels import Labels, read_labels


class RunEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One folder. A part that is not known yet is None or empty."""

    name: str
    touched: int
    """When the folder itself changed last: files of a run appear and are replaced by a rename, so
    all that changes without a trace here is what a run that goes on appends."""
    header: RunHeader | None = None
    reason: str = ""
    """Why there is no header."""
    labels: Labels = Labels()
    labels_problem: str = ""
    stamp: str = ""
    """Of the files that were read; empty: they were not yet."""
    figures: RunFigures | None = None
    problem: str = ""
    """Why the figures of files with this stamp cannot be known."""

    @property
    def is_read(self) -> bool:
        return bool(self.stamp) or self.header is None


def look(folder: Path, touched: int) -> RunEntry:
    """The header and the labels: little work, however large the run is."""
    labels, labels_problem = Labels(), ""
    try:
        header = read_header(folder)
    except ToolError as error:
        return RunEntry(name=folder.name, touched=touched, reason=error.message)
    try:
        labels = read_labels(folder)
    except ToolError as error:
        labels_problem = error.message
    return RunEntry(
        name=folder.name,
        touched=touched,
        header=header,
        labels=labels,
        labels_problem=labels_problem,
    )


def stamp_of(folder: Path) -> str:
    """Names, sizes and times of the files that say what happened; after a dot, of the labels."""
    record, labels = hashlib.blake2b(digest_size=12), ""
    with os.scandir(folder) as found:
        files = sorted((each.name, each) for each in found if each.name.startswith(_OF_A_RUN))
    for name, each in files:
        status = each.stat(follow_symlinks=False)
        mark = f"{name} {status.st_size} {status.st_mtime_ns}\n"
        if name == LABELS:
            labels = mark
        elif name == FILE_NAME or name.endswith(".jsonl"):
            record.update(mark.encode("utf-8", "surrogateescape"))
    return f"{record.hexdigest()}.{hashlib.blake2b(labels.encode(), digest_size=6).hexdigest()}"


def same_record(stamp: str, other: str) -> bool:
    """Do two stamps differ in the labels alone?"""
    return stamp.partition(".")[0] == other.partition(".")[0]


_OF_A_RUN = (FILE_NAME, LABELS, "events-")
