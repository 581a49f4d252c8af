"""Two runs side by side: which causes went, which came, which moved, and what it cost.

Before and after a change, one torch against another, one rank against another.
A fingerprint names the file; one that was renamed is known by its causes, which turn up under
another name, and none under the old one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import msgspec

from compilescope.knowledge.analysis.cache_changes import CacheComparison
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.bodies import GraphCaptured, SourceSeen
from compilescope.record.fingerprint import normalised, relative_file
from compilescope.record.run import Run
from compilescope.record.stack import origin_of


class MovedCause(msgspec.Struct, frozen=True, kw_only=True):
    """The same cause at another line, or a line that was rewritten and breaks as before."""

    before: Finding
    after: Finding


class RenamedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is called otherwise now: its causes were found again under another name."""

    before: str
    after: str
    causes: int


class ReclassifiedCause(msgspec.Struct, frozen=True, kw_only=True):
    """The same line in the same place, which another torch calls otherwise."""

    before: Finding
    after: Finding


class ChangedCount(msgspec.Struct, frozen=True, kw_only=True):
    """The same cause, seen more or less often."""

    before: Finding
    after: Finding


class ComparedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A number in both runs. None: not known there."""

    name: str
    before: float | None
    after: float | None
    better: str = "less"
    """Which way is better: `less`, `more`, or empty where neither is."""
    unit: str = ""


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two runs."""

    before: str
    after: str
    torch: tuple[str | None, str | None]
    commands: tuple[tuple[str, ...], tuple[str, ...]]
    figures: tuple[ComparedFigure, ...]
    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]
    moved: tuple[MovedCause, ...]
    changed: tuple[ChangedCount, ...]
    same: int
    """Causes that are as they were."""
    renamed: tuple[RenamedFile, ...] = ()
    """Files whose causes are among those that moved."""
    retold: tuple[ReclassifiedCause, ...] = ()
    """Neither gone nor new: only another torch has other words for them."""
    caches: CacheComparison | None = None
    """What torch's caches on disk held; None where neither run asked one."""
    unrelated: bool = False
    """The programs share no file and no cause: nothing here is a change of one program."""
    doubts: tuple[str, ...] = ()
    """Why a run may have more than its record: what is missing there need not be gone."""

    @property
    def equal(self) -> bool:
        return not (self.gone or self.new or self.moved or self.changed or self.retold)

    @property
    def other_torch(self) -> bool:
        """Two torches, both known: what differs may be torch's doing."""
        before, after = self.torch
        return bool(before and after and before != after)


def compare(
    before: Digest,
    after: Digest,
    names: tuple[str, str] | None = None,
    caches: CacheComparison | None = None,
) -> RunComparison:
    old, new = findings(before), findings(after)
    pairs = _by_fingerprint(old, new)
    gone, came = _left(old, pairs, 0), _left(new, pairs, 1)
    names_of = _relative(before), _relative(after)
    files = renamed_files(gone, came, (old, new), names_of)
    elsewhere = _under_new_names(gone, came, files, names_of)
    gone, came = _left(gone, elsewhere, 0), _left(came, elsewhere, 1)
    retold = _retold(gone, came, (before, after)) if before.torch != after.torch else []
    gone, came = _left(gone, retold, 0), _left(came, retold, 1)
    rewritten = _rewritten(gone, came, files, names_of)
    stayed = [(a, b) for a, b in pairs if _at(a, before) == _at(b, after)]
    moved = [(a, b) for a, b in pairs if _at(a, before) != _at(b, after)]
    moved += elsewhere + rewritten
    return RunComparison(
        before=names[0] if names else before.run,
        after=names[1] if names else after.run,
        torch=(before.torch, after.torch),
        commands=(before.command, after.command),
        figures=tuple(_figures(before, after)),
        gone=tuple(_left(gone, rewritten, 0)),
        new=tuple(_left(came, rewritten, 1)),
        moved=tuple(MovedCause(before=a, after=b) for a, b in moved),
        changed=tuple(ChangedCount(before=a, after=b) for a, b in stayed if a.count != b.count),
        same=sum(a.count == b.count for a, b in stayed),
        retold=tuple(ReclassifiedCause(before=a, after=b) for a, b in retold),
        renamed=tuple(_renamed(files, elsewhere + rewritten, names_of[0])),
        caches=caches,
    )


def with_relation(seen: RunComparison, before: Run, after: Run) -> RunComparison:
    """Says whether the two are of one program, as far as files and causes tell."""
    shared = seen.same or seen.moved or seen.changed or seen.retold or seen.renamed
    old, new = _own_files(before), _own_files(after)
    unrelated = bool(old and new) and not shared and not old & new
    return msgspec.structs.replace(seen, unrelated=unrelated)


def with_doubts(seen: RunComparison, before: Run, after: Run) -> RunComparison:
    """Says which record is not whole."""
    told = [
        f"{name} is not recorded to its end: {reason}."
        for name, run in ((seen.before, before), (seen.after, after))
        if (reason := _lacks(run))
    ]
    return msgspec.structs.replace(seen, doubts=tuple(dict.fromkeys(told)))


def _lacks(run: Run) -> str:
    if run.live:
        return "it is still running"
    if run.cut_short:
        return run.cut_short
    imported = run.presence is not None and run.presence.torch
    return "its event files are empty" if imported and run.torch_version is None else ""


def _own_files(run: Run) -> set[str]:
    """Names alone: the same program may lie in another folder."""
    seen = {body.file for _, body in run.of(SourceSeen)}
    seen |= {body.frame.file for _, body in run.of(GraphCaptured) if body.frame is not None}
    return {os.path.basename(file) for file in seen if origin_of(file) == "user"}


_Pairs = list[tuple[Finding, Finding]]
_Names = tuple[Callable[[str], str], Callable[[str], str]]
"""What the files of the two runs are called, whatever folder the programs lay in."""


def _left(found: list[Finding], pairs: _Pairs, side: int) -> list[Finding]:
    """Those of `found` that are on no pair's `side`."""
    paired = {id(pair[side]) for pair in pairs}
    return [finding for finding in found if id(finding) not in paired]


def _relative(digest: Digest) -> Callable[[str], str]:
    return lambda file: relative_file(file, digest.root)


def _renamed(
    files: dict[str, str], pairs: _Pairs, name: Callable[[str], str]
) -> Iterator[RenamedFile]:
    for before, after in files.items():
        causes = sum(name(old.file) == before for old, _ in pairs)
        if causes:
            yield RenamedFile(before=before, after=after, causes=causes)


def _at(finding: Finding, digest: Digest) -> tuple[str, int]:
    """Its place, whatever folder the program lay in."""
    return relative_file(finding.file, digest.root), finding.line


def _by_fingerprint(old: list[Finding], new: list[Finding]) -> _Pairs:
    waiting = {(finding.kind, finding.fingerprint): finding for finding in new}
    return [
        (finding, waiting[finding.kind, finding.fingerprint])
        for finding in old
        if (finding.kind, finding.fingerprint) in waiting
    ]


def _under_new_names(
    gone: list[Finding], came: list[Finding], files: dict[str, str], names: _Names
) -> _Pairs:
    """The same cause in a file that has another name now."""
    return _matched(
        [(cause_in(each, files.get(names[0](each.file), "")), each) for each in gone],
        [(cause_in(each, names[1](each.file)), each) for each in came],
    )


def _retold(gone: list[Finding], came: list[Finding], digests: tuple[Digest, Digest]) -> _Pairs:
    """The very same line of the same function: torch names what it stops at by another type."""

    def place(finding: Finding, side: int) -> tuple[str, ...]:
        file, line = _at(finding, digests[side])
        return finding.kind, file, str(line), finding.function, normalised(finding.source)

    return _matched(
        [(place(each, 0), each) for each in gone if each.file],
        [(place(each, 1), each) for each in came if each.file],
    )


def _rewritten(
    gone: list[Finding], came: list[Finding], files: dict[str, str], names: _Names
) -> _Pairs:
    """The same rule in the same function, once before and once after: its line was rewritten."""

    def place(finding: Finding, side: int) -> tuple[str, ...]:
        # The folder may differ between machines and checkouts; the file's name does not.
        name = names[side](finding.file)
        name = files.get(name, name) if side == 0 else name
        return finding.kind, finding.rule_id, name.rsplit("/", 1)[-1], finding.function

    return _matched(
        [(place(each, 0), each) for each in gone], [(place(each, 1), each) for each in came]
    )


def _matched(
    old: list[tuple[tuple[str, ...], Finding]], new: list[tuple[tuple[str, ...], Finding]]
) -> _Pairs:
    """Those with one key, where it is the one candidate on both sides.

    A guess between several would be a lie.
    """
    before: dict[tuple[str, ...], list[Finding]] = {}
    after: dict[tuple[str, ...], list[Finding]] = {}
    for found, by_key in ((old, before), (new, after)):
        for key, finding in found:
            by_key.setdefault(key, []).append(finding)
    return [
        (found[0], after[key][0])
        for key, found in before.items()
        if len(found) == 1 and len(after.get(key, ())) == 1
    ]


def _figures(before: Digest, after: Digest) -> list[ComparedFigure]:
    def figure(name: str, of: str, better: str = "less", unit: str = "") -> ComparedFigure:
        pair = [_value(digest, of) for digest in (before, after)]
        return ComparedFigure(name=name, before=pair[0], after=pair[1], better=better, unit=unit)

    return [
        figure("graph breaks", "sites"),
        figure("functions run eagerly", "eager_frames"),
        figure("recompiles", "recompiles"),
        figure("compile time", "compile_seconds", "less", "s"),
        figure("failures", "failures"),
        figure("graphs", "graphs"),
        figure("ops in graphs", "graph_ops", "more"),
        figure("guards", "guards"),
        figure("kernels", "kernels", ""),
        figure("coverage", "coverage", "more", "%"),
    ]


def _value(digest: Digest, of: str) -> float | None:
    if digest.torch is None:
        return None
    if of == "recompiles":
        return sum(frame.count for frame in digest.recompiles)
    value = getattr(digest, of)
    return len(value) if isinstance(value, tuple) else value


_MODULE = re.compile(r"__import_\w+")


def renamed_files(
    gone: list[Finding],
    came: list[Finding],
    all_found: tuple[list[Finding], list[Finding]],
    names: _Names,
) -> dict[str, str]:
    """Old name -> new name, of files that no longer have a cause and of such that had none.

    Each goes to the file that shares most causes with it; where two share as many, to neither.
    """
    known = [{names[side](each.file) for each in all_found[side]} for side in (0, 1)]
    before = _by_file(gone, names[0], known[1])
    after = _by_file(came, names[1], known[0])
    shared = [
        (len(causes & others), old, new)
        for old, causes in before.items()
        for new, others in after.items()
        if causes & others
    ]
    found: dict[str, str] = {}
    for number, old, new in sorted(shared, reverse=True):
        rivals = [
            each
            for each in shared
            if each[0] == number and (each[1] == old) != (each[2] == new)
            if each[1] not in found and each[2] not in found.values()
        ]
        if old not in found and new not in found.values() and not rivals:
            found[old] = new
    return found


def cause_in(finding: Finding, file: str) -> tuple[str, ...]:
    """What makes it this cause, in a file of that name."""
    by_line = finding.kind in ("break", "failure")
    said = normalised(finding.source) if by_line else _MODULE.sub("__import", finding.title)
    return file, finding.kind, finding.rule_id, finding.function, said


def _by_file(
    found: list[Finding], name: Callable[[str], str], elsewhere: set[str]
) -> dict[str, set[tuple[str, ...]]]:
    """The causes of each file that the other run knows nothing of."""
    causes: dict[str, set[tuple[str, ...]]] = {}
    for each in found:
        file = name(each.file)
        if each.file and file not in elsewhere:
            causes.setdefault(file, set()).add(cause_in(each, ""))
    return causes
