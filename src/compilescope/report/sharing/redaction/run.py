"""Redacts a run: out comes an ordinary run that every command opens, checked once more for what
must not be in it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from compilescope.record.artifacts import Artifacts
from compilescope.record.bodies import CompileFailed, FailedGuard, SourceSeen
from compilescope.record.event import Event
from compilescope.record.header import RunHeader
from compilescope.record.home import new_run_id
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame
from compilescope.record.uncollected import uncollected
from compilescope.report.sharing.archive import Progress
from compilescope.report.sharing.redaction import vocabulary
from compilescope.report.sharing.redaction.code import Words
from compilescope.report.sharing.redaction.files import KEPT_WORDS, Files, is_public_file, parts_of
from compilescope.report.sharing.redaction.name_survey import (
    collect_graph,
    collect_library,
    collect_sizes,
    collect_source,
    collect_values,
    names_in,
)
from compilescope.report.sharing.redaction.policies import POLICIES
from compilescope.report.sharing.redaction.prose import Prose
from compilescope.report.sharing.redaction.records import Records, Texts, fields_beyond

_WORD = re.compile(r"[^\W\d]\w*")
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\b[0-9a-f]{40}\.[a-z]+\b|\b[0-9a-f]{6}-redacted\b")
"""An escape of JSON, whose letter is no part of the word after it; hashes, and the run's new id."""
_OURS = KEPT_WORDS | {"kind", "host", "redacted", "Redacted", "missing"}
_AT_ONCE = 1 << 18
"""Letters, and the text that goes beyond them. Chosen: the words of so many take little memory."""
_SHORTEST = 3
"""Letters of a name that is looked for in the redacted run. Chosen: shorter ones stand in any text
by chance."""
_HOST = "host"
_SCALARS = frozenset((str, int, float, bool, type(None)))


@dataclass(frozen=True)
class Redaction:
    """A run without the user's names."""

    run: Run
    words: Words
    kept: frozenset[str]
    """Texts that stayed to the letter: of public code, and of the record's own vocabulary."""
    left_out: int
    """Files of source that are not in it, since there was too much."""

    @property
    def whole(self) -> int:
        """Texts that went as a whole, since there were too many words."""
        return len(self.words.beyond)


@uncollected()
def redact(run: Run, artifacts: Artifacts, progress: Progress | None = None) -> Redaction:
    """The redacted run; its texts are put into `artifacts`."""
    words = Words()
    sources = _sources(run)
    structs = list(_structs(run))
    paths = _paths(run, structs)
    files = Files(words, {file: text for file, (_, text) in sources.items()})
    _collect(words, run, sources, files, paths, structs)
    del structs
    prose = Prose(words, files.line_of, sorted(paths))
    public = {name for file, (name, _) in sources.items() if is_public_file(file)}

    known = dict(sources.values())

    def records(target: Artifacts | None) -> Records:
        texts = Texts(run.artifacts, target, files, prose, public, known)
        return Records(words, files, prose, texts)

    half = len(run.events)

    def note(done: int) -> None:
        if progress is not None:
            progress(done, 2 * half)

    prose.learn()
    _learn(records(None), run, note)
    words.settle()
    prose.forget()
    files.forget()
    redacting = records(artifacts)
    header, events = _redact(redacting, run, lambda done: note(half + done))
    # A file that could not be read counts as a line: that much of it is known.
    unread = run.unread + len(run.unread_files)
    redacted = Run(header, events, artifacts, unread=unread, torn=run.torn)
    kept = frozenset(files.kept | prose.kept | redacting.kept)
    return Redaction(redacted, words, kept, files.left_out)


def _learn(records: Records, run: Run, note: Callable[[int], None]) -> None:
    records.struct(run.header)
    for number, event in enumerate(run.events, 1):
        records.event(event)
        note(number)


def _redact(
    records: Records, run: Run, note: Callable[[int], None]
) -> tuple[RunHeader, list[Event]]:
    header = records.struct(run.header)
    # The id says what was run, the host where.
    header = msgspec.structs.replace(header, run=new_run_id("redacted"), host=_HOST)
    events = []
    for number, event in enumerate(run.events, 1):
        events.append(records.event(event))
        note(number)
    return header, events


def _sources(run: Run) -> dict[str, tuple[str, str]]:
    """File -> (artifact, text); the first that was seen of each."""
    found: dict[str, tuple[str, str]] = {}
    for _, body in run.of(SourceSeen):
        if body.file not in found:
            text = run.artifacts.get(body.artifact)
            if text is not None:
                found[body.file] = (body.artifact, text)
    return found


def _paths(run: Run, structs: Iterable[msgspec.Struct]) -> set[str]:
    found = {run.header.cwd, run.header.root}
    for struct in structs:
        if isinstance(struct, (Frame, CodeRef, SourceSeen)):
            found.add(struct.file)
    return {path for path in found if path}


def _structs(run: Run) -> Iterator[msgspec.Struct]:
    """Every struct of every event, each once."""
    seen: set[int] = set()
    stack: list[Any] = [*run.events]
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind in _SCALARS:
            continue
        if isinstance(value, tuple):
            stack.extend(value)
        elif isinstance(value, msgspec.Struct) and id(value) not in seen:
            seen.add(id(value))
            yield value
            stack += [getattr(value, field) for field in fields_beyond(type(value), _SCALARS)]


@functools.cache
def _artifacts_of(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields that name texts, but for source."""
    policies = POLICIES.get(kind.__name__, {})
    return tuple(
        field
        for field, policy in policies.items()
        if policy.startswith("artifact-") and policy != "artifact-source"
    )


def _texts(
    sources: dict[str, tuple[str, str]], structs: Iterable[msgspec.Struct]
) -> dict[str, set[int]]:
    """The texts of the user's files, each once, and the lines of which columns are told."""
    own = {file: text for file, (_, text) in sources.items() if not is_public_file(file)}
    found: dict[str, set[int]] = {text: set() for text in own.values()}
    for struct in structs:
        if isinstance(struct, Frame) and struct.end_column is not None and struct.file in own:
            found[own[struct.file]].add(struct.line)
    return found


def _collect(
    words: Words,
    run: Run,
    sources: dict[str, tuple[str, str]],
    files: Files,
    paths: set[str],
    structs: Collection[msgspec.Struct],
) -> None:
    own = {part for path in paths if not is_public_file(path) for part in parts_of(path)}
    bound: set[str] = set()
    for file, (_, text) in sources.items():
        if is_public_file(file):
            collect_library(words.names, text)
    for text, lines in _texts(sources, structs).items():
        if files.is_left_out(text):
            bound |= names_in(text)
        else:
            names_bound, ends = collect_source(words.names, text, own, lines)
            bound |= names_bound
            files.note_ends(text, lines, ends)
    words.names.modules -= bound
    # In their order: texts that were written one after the other lie together, and are unpacked so.
    names: dict[str, None] = {}
    for struct in structs:
        if isinstance(struct, FailedGuard):
            collect_values(words, struct)
        if isinstance(struct, CompileFailed):
            collect_sizes(words, struct.message)
        names |= dict.fromkeys(
            getattr(struct, field) or "" for field in _artifacts_of(type(struct))
        )
    for name in names:
        text = run.artifacts.get(name) or ""
        collect_sizes(words, text)
        if '"constants"' in text:
            with suppress(msgspec.DecodeError, RecursionError):
                collect_graph(words, msgspec.json.decode(text))


# The last look before a redacted run is handed out: none of the user's names may be in it.
#
# It knows nothing of how the names were replaced, so it finds what was forgotten.


def leaked_names(redaction: Redaction, texts: Iterable[str]) -> list[str]:
    """Names of the user's that these texts, the files of the redacted run, still have."""
    hidden = _hidden(redaction)
    found: set[str] = set()
    for parts in _parted(texts):
        for some in _joined(parts):
            found |= hidden.intersection(_words(some))
    return sorted(found)


def _parted(texts: Iterable[str]) -> Iterator[set[str]]:
    """No word goes over a quote or a line; what stands between them is often there again, and in a
    run of many short files in each of them."""
    parts: set[str] = set()
    size = 0
    for text in texts:
        parts.update(text.replace("\n", '"').split('"'))
        size += len(text)
        if size > _AT_ONCE:
            yield parts
            parts, size = set(), 0
    yield parts


def _joined(texts: Iterable[str]) -> Iterator[str]:
    """Many of the texts as one: most are a word or two, and take longer one by one."""
    some: list[str] = []
    size = 0
    for text in texts:
        some.append(text)
        size += len(text)
        if size > _AT_ONCE:
            yield '"'.join(some)
            some, size = [], 0
    yield '"'.join(some)


def _words(text: str) -> list[str]:
    return _WORD.findall(_ESCAPE.sub(" ", text))


def a_few(names: list[str]) -> str:
    """For a sentence; in a damaged run a name may be of any length."""
    return ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in names[:5])


def _hidden(redaction: Redaction) -> set[str]:
    """The user's names, and the words of strings, but for those that are somebody else's too."""
    names = redaction.words.names
    kept = redaction.kept | names.public_paths
    shown = {word for some in _joined(kept) for word in _WORD.findall(some)}
    others = {*names.public, *names.given, *shown, *_OURS}
    spoken = {word for some in _joined(names.texts) for word in _words(some)}
    common = vocabulary.prose() | vocabulary.errors() | vocabulary.generated()
    return {
        word
        for word in (names.users | spoken | names.parts) - others - common
        if len(word) >= _SHORTEST and not vocabulary.is_public(word)
    }
