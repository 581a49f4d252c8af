"""Redacts paths, part by part, so that what lay in one folder still does.

The part of a path inside a well-known package, or inside Python's own library, stays: that code
is public, and to know it is to know what broke.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig

from compilescope.sharing.redaction import vocabulary
from compilescope.sharing.redaction.names import Names

_PACKAGES = re.compile(r"(.*[/\\](?:site|dist)-packages[/\\])(.+)", re.S)
_STDLIB = re.compile(r"(.*[/\\]lib[/\\]python3\.\d+[/\\])(.+)", re.S)
_SEPARATOR = re.compile(r"([/\\]+)")
_KEPT = re.compile(
    r"bin|lib|lib64|opt|tmp|usr|python3?(?:\.\d+)*|(?:site|dist)-packages|\.?venv|\.\.?|~"
    r"|[A-Za-z]:|__init__|__main__"
)
_SUFFIXES = frozenset((".py", ".pyi", ".pyc", ".ipynb", ".so", ".pyx", ".cpp", ".cu", ".json"))
_MADE = re.compile(
    r"<(?:string|stdin|console|unknown|doctest|frozen [\w.]+|eval_with_key[>.\d]*|module|lambda"
    r"|listcomp|dictcomp|setcomp|genexpr|locals|template|debug_call|torch_package_\d+)>?(?:\.\d+)?"
)
_PROMPT = re.compile(r"<(stdin|console|ipython)")


KEPT_WORDS = frozenset(
    re.findall(r"[^\W\d]\w+", " ".join((_KEPT.pattern, _MADE.pattern, _PROMPT.pattern, *_SUFFIXES)))
)
"""What of a path, or of a name in its place, may stay."""


def public_part(path: str) -> tuple[str, str]:
    """(what comes before, the part inside a well-known package or Python's library; else empty)"""
    if "-packages" not in path and "python3." not in path:
        return path, ""  # As nearly all of the user's own, of which there may be very many.
    match = _PACKAGES.fullmatch(path)
    if match is not None:
        return (match[1], match[2]) if _belongs_to_public(match[2]) else (path, "")
    match = _STDLIB.fullmatch(path)
    if match is not None and _is_in_stdlib(match[2]):
        return match[1], match[2]
    return path, ""


@functools.cache
def _is_in_stdlib(inner: str) -> bool:
    """Does this Python have such a file too? A folder `lib/python3.11` may hold anything."""
    return _top(inner) in sys.stdlib_module_names and os.path.isfile(
        os.path.join(sysconfig.get_path("stdlib"), *_SEPARATOR.split(inner)[::2])
    )


def is_public_file(path: str) -> bool:
    """Code that anyone can read."""
    return public_part(path)[1] != ""


def _top(inner: str) -> str:
    return _SEPARATOR.split(inner, maxsplit=1)[0].split(".", 1)[0]


def _belongs_to_public(inner: str) -> bool:
    return vocabulary.is_known_package(_top(inner))


def redact_path(names: Names, path: str) -> str:
    """The path with other names for the user's folders and files."""
    known = names.paths.get(path)
    if known is None:
        made_up = path.startswith("<")
        known = _redact_made_up(names, path) if made_up else _redact_path(names, path)
        names.paths[path] = known
    return known


def _redact_path(names: Names, path: str) -> str:
    before, inside = public_part(path)
    names.public_paths.add(inside)
    if inside:
        return _redact_folder(names, before) + inside
    end = max(before.rfind("/"), before.rfind("\\")) + 1
    return _redact_folder(names, before[:end]) + _part(names, before[end:], True)


def _redact_folder(names: Names, folder: str) -> str:
    """Once for all files that lie in it."""
    known = names.folders.get(folder)
    if known is None:
        parts = _SEPARATOR.split(folder)
        known = "".join(_part(names, part, False) for part in parts)
        names.folders[folder] = known
    return known


def _part(names: Names, part: str, is_file: bool) -> str:
    if not part or _SEPARATOR.fullmatch(part) or _KEPT.fullmatch(part):
        return part
    stem, dot, suffix = part.rpartition(".")
    if is_file and stem and f".{suffix}" in _SUFFIXES:
        return f"{_stem(names, stem)}.{suffix}"
    return _stem(names, part, "m" if is_file and dot else "d")


def _stem(names: Names, stem: str, kind: str = "m") -> str:
    if _KEPT.fullmatch(stem):
        return stem
    # A folder may have the name of a function of torch's; the folder's is replaced nonetheless.
    space = "path" if vocabulary.is_public(stem) else ""
    names.kinds.setdefault(stem, "m" if kind == "m" else "d")
    names.parts.add(stem)
    return names.replace(stem, space=space)


def _redact_made_up(names: Names, path: str) -> str:
    if _MADE.fullmatch(path):
        names.public_paths.add(path)
        return path
    prompt = _PROMPT.match(path)
    start = f"<{prompt[1]}-" if prompt else "<"
    return f"{start}{names.replace(path, 'm')}>"


def parts_of(path: str) -> list[str]:
    """The names of the folders and of the file, without its suffix."""
    return [part.partition(".")[0] or part for part in re.split(r"[/\\]+", path) if part]
