"""Two versions of a program, as a user names them: another file, a patch, or commits."""

from __future__ import annotations

import ast
import io
import os
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.verification.git_versions import (
    CommitFiles,
    commits_of,
    read_commit,
    top_of,
)
from compilescope.change.repair.verification.unified_diff import (
    FilePatch,
    apply_hunks,
    check_inside,
    read_diff,
    stripped,
)
from compilescope.record.plain_files import read_source_text

_PREFIXES = ("a/", "b/", "c/", "i/", "o/", "w/")
"""What git puts before names."""


@dataclass(frozen=True)
class VersionPair:
    """The program before a change and after it."""

    before: Version
    after: Version
    name: str
    """What the change is, for a reader."""
    before_name: str = "before"
    after_name: str = "after"
    others: tuple[str, ...] = ()
    """Files that are no Python modules and differ as well: both versions run with those on disk."""

    @property
    def is_same(self) -> bool:
        paths = {*self.before.files, *self.after.files, *self.before.absent, *self.after.absent}
        return all(self.before.text_of(path) == self.after.text_of(path) for path in paths)

    def moved(self, into: Callable[[str], str]) -> VersionPair:
        """The same in a copy of the folder."""
        both = (
            Version(
                {into(path): text for path, text in version.files.items()},
                version.environment,
                frozenset(map(into, version.absent)),
            )
            for version in (self.before, self.after)
        )
        before, after = both
        return replace(self, before=before, after=after, others=tuple(map(into, self.others)))


# Another file in the place of the program's


def against_file(main: str, other: Path) -> VersionPair:
    """The other file runs under the first one's path, with the modules beside it under the paths
    that they would have there."""
    path = os.path.abspath(other)
    if not os.path.isfile(path):
        raise ToolError(f"There is no file {other}.")
    if os.path.realpath(path) == os.path.realpath(main):
        raise ToolError(f"{other} is the program itself: there is nothing to compare.")
    text = _read(path, str(other))
    files = {main: text}
    here, there = os.path.dirname(main), os.path.dirname(path)
    if os.path.realpath(here) != os.path.realpath(there):
        for name in _beside(text, there):
            files[os.path.join(here, name)] = _read(os.path.join(there, name), name)
    read = {each: _text(each) for each in files if os.path.isfile(each)}
    known = {each: text for each, text in read.items() if text is not None}
    changed = {each: text for each, text in files.items() if known.get(each) != text}
    before = {each: known[each] for each in changed if _is_odd(each, known)}
    return VersionPair(
        Version(before), Version(changed), str(other), os.path.basename(main), str(other)
    )


def _beside(text: str, folder: str) -> Iterator[str]:
    """The modules in the folder that a text imports, and those that these import: their paths from
    there."""
    waiting, seen = [(text, "")], set()
    while waiting:
        source, package = waiting.pop()
        for name in _imported(source, package):
            for tail in (f"{name}.py", f"{name}/__init__.py"):
                path = os.path.join(folder, tail)
                if tail not in seen and os.path.isfile(path):
                    seen.add(tail)
                    yield tail
                    inner = name if tail.endswith("__init__.py") else os.path.dirname(name)
                    waiting.append((_text(path) or "", inner))


def _imported(text: str, package: str) -> Iterator[str]:
    """The modules that it may mean, as paths without an ending."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield from _parents(each.name.replace(".", "/"))
        elif isinstance(node, ast.ImportFrom):
            parts = package.split("/") if package else []
            start = parts[: len(parts) - node.level + 1] if node.level else []
            base = "/".join([*start, *(node.module or "").split(".")]).strip("/")
            yield from _parents(base)
            yield from (f"{base}/{each.name}".lstrip("/") for each in node.names)


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/") if name else []
    yield from ("/".join(parts[: end + 1]) for end in range(len(parts)))


# A patch


def patched(data: bytes, shown: str, folders: Iterable[str]) -> VersionPair:
    """`folders`: where its names may start from, the likeliest first."""
    patches = read_diff(data, shown)
    for each in patches:
        if each.is_binary and each.name.endswith(".py"):
            raise ToolError(f"{shown} changes {each.name} as a binary file, not as text.")
    root, levels = _root_of(patches, list(dict.fromkeys(folders)), shown)
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    absent: set[str] = set()
    others: list[str] = []
    for each in patches:
        old, new = (_path(name, root, levels) for name in (each.old, each.new))
        if not (new or old or "").endswith(".py"):
            others.append(new or old or "")
            continue
        text = _read(old, os.path.relpath(old, root)) if old is not None else ""
        if old is not None and _is_odd(old, {old: text}):
            before[old] = text
        if old is None and new is not None and os.path.exists(new):
            raise ToolError(f"{shown} makes {os.path.relpath(new, root)}, which exists already.")
        if new is not None:
            name = os.path.relpath(new, root)
            after[new] = apply_hunks(after.get(old or "", text), each, name)
        elif old is not None:
            apply_hunks(text, each, os.path.relpath(old, root))
        if old is not None and old != new:
            absent.add(old)
    return VersionPair(
        Version(before), Version(after, absent=frozenset(absent)), shown, others=tuple(others)
    )


def _root_of(patches: list[FilePatch], folders: list[str], shown: str) -> tuple[str, int]:
    """The folder that the names start from, and how many of their parts are a prefix."""
    names = [name for each in patches for name in (each.old, each.new) if name is not None]
    for name in names:
        if os.path.isabs(name) or ".." in name.split("/"):
            raise ToolError(f"{shown} changes {name}, which is outside of the program's folder.")
    prefixed = all(name.startswith(_PREFIXES) for name in names)
    for levels in (1, 0) if prefixed else (0, 1):
        for folder in folders:
            old = [_path(each.old, folder, levels) for each in patches if each.old is not None]
            known = [path for path in old if path is not None]
            is_new = not known and levels == int(prefixed)
            if is_new or (known and all(os.path.isfile(path) for path in known)):
                for name in names:
                    check_inside(os.path.join(folder, stripped(name, levels)), folder, name)
                return folder, levels
    missing = next(
        (
            name
            for name in (stripped(each.old or "", int(prefixed)) for each in patches)
            if name and not any(os.path.isfile(os.path.join(f, name)) for f in folders)
        ),
        patches[0].name,
    )
    raise ToolError(f"{shown} changes {missing}, which is not in {folders[0]}.")


def _path(name: str | None, folder: str, levels: int) -> str | None:
    return os.path.join(folder, stripped(name, levels)) if name is not None else None


# Commits


def between_commits(wanted: str, folder: str) -> VersionPair:
    """The working tree against a commit, or two commits."""
    top = top_of(folder)
    old, new = commits_of(folder, wanted)
    names = wanted.replace("...", "..").partition("..")
    first = read_commit(top, old, names[0] or "HEAD")
    second = read_commit(top, new, names[2] or "HEAD") if new is not None else None
    after = _of_commit(second) if second is not None else Version()
    changed = {*first.texts, *first.absent}
    if second is not None:
        # What both have alike, and the working tree otherwise, does not differ between them.
        changed |= {*second.texts, *second.absent}
    return VersionPair(
        _of_commit(first),
        after,
        wanted if new is not None else f"{wanted}..working tree",
        first.name,
        second.name if second is not None else "working tree",
        tuple(sorted(path for path in changed if not path.endswith(".py"))),
    )


def _of_commit(commit: CommitFiles) -> Version:
    texts = {
        path: _decoded(data, path) for path, data in commit.texts.items() if path.endswith(".py")
    }
    return Version(texts, absent=frozenset(p for p in commit.absent if p.endswith(".py")))


# Texts


def _read(path: str, shown: str) -> str:
    try:
        return read_source_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise ToolError(f"Cannot read {shown}: {error.strerror}.") from None
    except (SyntaxError, ValueError):
        raise ToolError(f"{shown} is no text that Python can read.") from None


def _text(path: str) -> str | None:
    try:
        return _read(path, path)
    except ToolError:
        return None


def _decoded(data: bytes, path: str) -> str:
    stream = io.BytesIO(data)
    try:
        encoding, _ = tokenize.detect_encoding(stream.readline)
        stream.seek(0)
        return io.TextIOWrapper(stream, encoding).read().removeprefix("\ufeff")
    except (SyntaxError, ValueError, LookupError):
        raise ToolError(f"{os.path.basename(path)} is no text that Python can read.") from None


def _is_odd(path: str, texts: Mapping[str, str | None]) -> bool:
    """Is the file on disk no plain UTF-8? Then a version has to hold its text."""
    return path in texts and Version().text_of(path) != texts[path]
