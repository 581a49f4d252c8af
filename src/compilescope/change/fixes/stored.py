"""The fix that a search verified, as its run keeps it: to be looked at, and applied later."""

from __future__ import annotations

import msgspec

from compilescope.change.fixes.diffs import byte_order_mark, unified_diff
from compilescope.record.artifacts import Artifacts
from compilescope.record.bodies import FixOutcome
from compilescope.record.fix_search import FixedFile
from compilescope.record.run import Run


class StoredFix(msgspec.Struct, frozen=True):
    """What a search came to."""

    outcome: FixOutcome
    files: tuple[FixedFile, ...]
    root: str
    """The folder that the diff is relative to."""
    changes: str = ""
    """The files as they were stored: what a seal of theirs is about."""
    whole: bool = True
    """False: the record of what changes is missing, redacted or damaged."""

    @property
    def texts(self) -> dict[str, str]:
        return {file.path: file.fixed for file in self.files}

    @property
    def originals(self) -> dict[str, str]:
        return {file.path: file.original for file in self.files}

    @property
    def diff(self) -> str:
        """Made of the very texts that would be written, so that nobody is shown anything else.
        `patch -p1` takes it in `root`."""
        return unified_diff(self.originals, self.texts, self.root)

    @property
    def verified(self) -> bool:
        """There is something to use, and it was verified."""
        found = self.outcome
        return found.verdict == "verified" and bool(self.files or found.environment)


def stored_fix(run: Run) -> StoredFix | None:
    """Of the search that a run is of; None where it is of none, or an earlier version kept it."""
    found = [body for _, body in run.of(FixOutcome)]
    return read_outcome(found[-1], run.artifacts, run.header.root) if found else None


def read_outcome(outcome: FixOutcome, artifacts: Artifacts, root: str) -> StoredFix:
    if not outcome.changes:
        # What was verified changes something; a redacted run no longer says what.
        left_out = outcome.verdict == "verified" and not outcome.environment
        return StoredFix(outcome, (), root, whole=not left_out)
    try:
        text = artifacts.get(outcome.changes) or ""
        files = msgspec.json.decode(text, type=tuple[FixedFile, ...])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return StoredFix(outcome, (), root, whole=False)
    return StoredFix(outcome, files, root, text)


def store_files(files: dict[str, str], originals: dict[str, str], artifacts: Artifacts) -> str:
    """The name of the artifact. As JSON: texts on disk would lose their line ends."""
    if not files:
        return ""
    kept = []
    for path in sorted(files):
        mark = byte_order_mark(path)
        kept.append(FixedFile(path, mark + originals[path], mark + files[path]))
    return artifacts.put(msgspec.json.encode(kept).decode(), "json")
