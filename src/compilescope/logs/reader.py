"""Reads logs into a Run: finds the files, tells their formats, and feeds them to the readers.

A format is told by what a file holds. Many files are read by several processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION
from compilescope.logs.format import LogSource, Reader, ReadTally, Writer
from compilescope.logs.formats import all_formats
from compilescope.logs.input_files import STDIN, Opened, blocks, log_files, source_of
from compilescope.logs.run_writer import RunWriter, join_packs, remove_marks
from compilescope.record.bodies import LogRead
from compilescope.record.eventfile import EventReader, event_files
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import make_home, new_run_id, note_made

Progress = Callable[[int, int], None]
"""(bytes done, bytes in all)"""
OUR_FAULT = "Reading it failed; this is a bug in compilescope"
_SNIFFED = 1 << 20
"""Bytes by which a format is told. Chosen: logs begin with what a launcher and a shell print."""
_MOST_ODD = 0.2
"""The largest share of characters that are no text. Chosen: a binary file has far more of them, and
a damaged log fewer."""
_WHAT_A_LOG_IS = "compilescope reads logs from TORCH_TRACE, TORCH_LOGS, torch_xla and tt-xla."
_LOOKED_AT = 1000
"""Events of a process, and processes, among which a stack from the script's own module is looked
for. Chosen: it bounds the time."""
_FEW_BYTES = 8 << 20
"""Below this, starting processes costs more than it gains. Chosen."""


class ReadLogs(msgspec.Struct, frozen=True):
    """A run that was made of logs."""

    run: str
    path: Path
    events: int
    sources: tuple[LogRead, ...]


class Chain:
    """Readers one behind the other: each gets what those before it did not take."""

    def __init__(self, readers: Iterable[Reader]) -> None:
        self._readers = list(readers)

    def feed(self, block: bytes) -> bytes:
        for reader in self._readers:
            if not block:
                break
            block = reader.feed(block)
        return block

    def finish(self) -> bytes:
        rest = b""
        for reader in self._readers:
            if rest:
                rest = reader.feed(rest)
            rest += reader.finish()
        return rest


class _Text:
    """The readers of console text, made for the first line of it: most traces hold none."""

    def __init__(self, writer: Writer, source: LogSource) -> None:
        self._writer, self._source = writer, source
        self._engine: Reader | None = None

    def feed(self, block: bytes) -> bytes:
        if self._engine is None:
            from compilescope.logs.text.engine import text_reader

            self._engine = text_reader(self._writer, self._source)
        return self._engine.feed(block)

    def finish(self) -> bytes:
        return self._engine.finish() if self._engine is not None else b""


def chain_for(head: bytes, writer: Writer, source: LogSource) -> Chain:
    """The readers for a source that begins like this. Console text may follow anywhere."""
    structured = [
        form.reader(writer, source)
        for form in all_formats()
        if form.begins is not None and form.begins(head)
    ]
    source.in_parts = bool(structured)
    return Chain([*structured, _Text(writer, source)])


def read_source(name: str, writer: RunWriter, note: Callable[[int], None]) -> LogRead:
    """One source from beginning to end; what went wrong stands in what comes back."""
    source = source_of(name)
    tally = source.tally
    size = 0
    try:
        opened = Opened(name, tally)
    except OSError as error:
        tally.problems.append(f"It could not be opened: {error.strerror or error}.")
        return log_read(source, 0)
    try:
        chain: Chain | None = None
        for block in blocks(opened, tally):
            if chain is None:
                chain = chain_for(block[:_SNIFFED], writer, source)
            chain.feed(block)
            size += len(block)
            note(opened.done)
        if chain is not None:
            chain.finish()
    except OSError:
        raise  # The run's own disk: that is for the user to mend.
    except (
        Exception
    ) as error:  # The border of a format: other logs, and what was read, still count.
        import logging

        logging.getLogger(__name__).exception("reading %s", name)
        tally.problems.append(f"{OUR_FAULT} ({type(error).__name__}: {error}).")
        tally.cut_tail = True
    finally:
        opened.close()
    return log_read(source, size)


def log_read(source: LogSource, size: int) -> LogRead:
    tally = source.tally
    return LogRead(
        source=source.name,
        bytes=size,
        lines=tally.lines,
        records=tally.records,
        unread=tally.unread,
        samples=tuple(tally.samples),
        formats=tuple(sorted(tally.formats)),
        flags=tuple(sorted(tally.flags)),
        build=tally.build,
        cut_head=tally.cut_head,
        cut_tail=tally.cut_tail,
        interleaved=tally.interleaved,
        cut_lines=tally.cut_lines,
        problems=tuple(tally.problems),
        command=tally.command,
    )


def read_logs(
    paths: list[str],
    home: Path,
    *,
    target: Path | None = None,
    progress: Progress | None = None,
    source_folders: tuple[str, ...] = (),
) -> ReadLogs:
    """The logs in `paths` as one run in `home`, or as the folder `target`. Whole, or not there.
    The program's own files may lie in `source_folders`."""
    names, problems = log_files(paths)
    if not names:
        raise ToolError("There is nothing to read.", hint=" ".join(problems))
    run = target.name if target is not None else new_run_id(_label(paths))
    folder = target if target is not None else home / run
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    _make(part, folder, target)
    try:
        found, events = _read_all(names, part, progress, source_folders)
        _refuse_what_is_no_log(found)
        write_header(part, log_header(run, paths, program_folder(part)))
        part.rename(folder)
    except OSError as error:
        raise ToolError(f"Cannot write the run {folder}: {error.strerror}.") from None
    finally:
        if os.path.lexists(part):
            import shutil  # Of a log that was read nothing is left there.

            shutil.rmtree(part, ignore_errors=True)
    note_made(folder)
    return ReadLogs(run, folder, events, tuple(found))


def _refuse_what_is_no_log(found: list[LogRead]) -> None:
    """Text without a line of ours is a log that lacks its flags; this is about no text at all."""
    if not found or any(log.formats for log in found):
        return
    wrong = [_no_text(log) for log in found]
    if all(wrong):
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise ToolError(f"{wrong[0]}{more}", hint=_WHAT_A_LOG_IS)


def _no_text(log: LogRead) -> str:
    if log.problems and not log.bytes:
        return f"{log.source}: {log.problems[0]}"
    if not log.bytes:
        return f"{log.source} is empty."
    try:
        head = b"".join(islice(blocks(Opened(log.source, ReadTally()), ReadTally()), 1))[:_SNIFFED]
    except OSError:
        return ""
    shown = head.decode("utf-8", "replace")
    odd = sum(c == "\ufffd" or (c < " " and c not in "\t\n\r\x1b") for c in shown)
    return f"{log.source} is not a text log." if odd > _MOST_ODD * len(shown) else ""


def program_folder(run: Path) -> str:
    """The folder of the script whose log this is, as far as its stacks tell; else where we are."""
    for path in islice(event_files(run), _LOOKED_AT):
        for event in islice(EventReader().read(path), _LOOKED_AT):
            outermost = event.stack[0] if event.stack else None
            if outermost is None or outermost.function != "<module>":
                continue
            if outermost.origin == "user" and "/" in outermost.file:
                return outermost.file.rpartition("/")[0]
    return os.getcwd()


def log_header(run: str, paths: list[str], root: str) -> RunHeader:
    now = time.time_ns()
    return RunHeader(
        run=run,
        tool=VERSION,
        command=("compilescope", "logs", *paths),
        cwd=os.getcwd(),
        root=root,
        started_ns=now,
        ended_ns=now,
    )


def _label(paths: list[str]) -> str:
    return "log" if paths[0] == STDIN else Path(paths[0]).name or "log"


def _make(part: Path, folder: Path, target: Path | None) -> None:
    if folder.exists():
        raise ToolError(f"{folder} already exists.", hint="Choose another folder with -o.")
    try:
        if target is None:
            make_home(part.parent)
        part.mkdir(parents=True)
    except OSError as error:
        raise ToolError(
            f"Cannot write the run under {part.parent}: {error.strerror}.",
            hint="Choose another folder with -o or --dir.",
        ) from None


def _read_all(
    names: list[str], folder: Path, progress: Progress | None, sources: tuple[str, ...]
) -> tuple[list[LogRead], int]:
    sizes = {name: _size(name) for name in names}
    total = sum(sizes.values())
    groups = _groups(names, sizes, os.cpu_count() or 1)
    if len(groups) == 1 or total < _FEW_BYTES:
        note = (lambda done: progress(done, total)) if progress else None
        found, events = read_group(names, str(folder), note, sources, alone=True)
    else:
        found, events = _read_in_processes(groups, folder, total, progress, sources)
    order = {name: number for number, name in enumerate(names)}
    found.sort(key=lambda one: order.get(one.source, 0))
    join_packs(folder)
    remove_marks(folder)
    return found, events


def _read_in_processes(
    groups: list[list[str]],
    folder: Path,
    total: int,
    progress: Progress | None,
    sources: tuple[str, ...],
) -> tuple[list[LogRead], int]:
    # One file needs neither, and both take long to import.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    found: list[LogRead] = []
    events = done = 0
    # A fresh interpreter each: whoever calls this may run threads, which a fork would not survive.
    with ProcessPoolExecutor(len(groups), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(read_group, each, str(folder), None, sources) for each in groups]
        for result in jobs:
            read, count = result.result()
            found += read
            events += count
            done += sum(one.bytes for one in read)
            if progress is not None:
                progress(min(done, total), total)
    return found, events


def read_group(
    names: list[str],
    folder: str,
    note: Callable[[int], None] | None = None,
    source_folders: tuple[str, ...] = (),
    *,
    alone: bool = False,
) -> tuple[list[LogRead], int]:
    """Several sources into one writer, one after the other."""
    writer = RunWriter(Path(folder), source_folders=source_folders, alone=alone)
    found: list[LogRead] = []
    before = 0
    try:
        for name in names:
            one = read_source(name, writer, _shifted(note, before))
            before += _size(name)
            found.append(one)
            writer.told_of(one)
        writer.close()
    except BaseException:
        writer.discard()
        raise
    return found, writer.events


def _shifted(note: Callable[[int], None] | None, start: int) -> Callable[[int], None]:
    return lambda done: note(start + done) if note is not None else None


def _groups(names: list[str], sizes: dict[str, int], most: int) -> list[list[str]]:
    """As many groups as there are processors, the largest files spread first."""
    groups: list[list[str]] = [[] for _ in range(max(1, min(most, len(names))))]
    loads = [0] * len(groups)
    for name in sorted(names, key=lambda name: -sizes[name]):
        least = loads.index(min(loads))
        groups[least].append(name)
        loads[least] += sizes[name] + 1
    return groups


def _size(name: str) -> int:
    try:
        return 0 if name == STDIN else os.stat(name).st_size
    except OSError:
        return 0
