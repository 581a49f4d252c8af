"""The table of names: one short name for each of the user's, numbered as they appear;
and how what is known of a run, paths and strings, is found in a text.

No name is derived from the one it stands for, so none can be guessed by trying.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from compilescope.report.sharing.redaction import vocabulary

_SEPARATOR = re.compile(r"[/\\]")
_LONGEST_PART = 256
"""Of a path: no file system takes a longer name."""
_MOST_PARTS = 300
"""Of a path. Chosen: a bound for texts that are all separators."""
_START = 6
"""Letters by which paths and strings are looked up. Chosen: few strings begin alike in so many, and
shorter ones are words of any text."""
_FEW = 50
"""Beginnings for which one expression is quicker than looking at every separator. Chosen, not
measured."""
_MOST_LOOKED = 100_000_000
"""Letters of strings that begin as a line does. Chosen: it bounds the time for a run whose strings
all begin alike."""
Kind = Literal["v", "f", "C", "m", "d", "text", "key"]
"""Variable, function, class, module, folder; a string; a cache's key."""
Context = Literal["code", "quoted", "sentence", "generated"]

_RESUMED, _IMPORTED = "torch_dynamo_resume_in_", "__import_"
_RESUME = re.compile(rf"({_RESUMED})(.+)(_at_\d+)")
_IMPORT = re.compile(rf"({_IMPORTED})(.+)")
_DEEPEST = 20
"""Names that torch made of one another. Chosen: a bound for hostile text; torch makes few."""
_KERNEL = re.compile(r"((?:triton|cpp|cuda|cutlass|mps|xpu|cpu)_(?:[a-z]{2,6}_)?fused_)(.*)(_\d+)")
_LONGEST_COUNT = 4
"""Digits behind a name that are kept. Chosen: enough for torch's counters; a longer number may mean
something to the user."""
_SHORTEST = 6
"""Letters of a string that is looked for inside other texts. Chosen: as many as they are looked up
by; shorter ones are words of any text."""
_INPUT = re.compile(
    r"(?:primals|tangents|arg|buf|tmp|tmp_acc|in_ptr|out_ptr|in_out_ptr|ks|fwd_rng_state"
    r"|bwd_rng_state)\d*(?:_(?:\d+|vec|arr|next))*|[xyzri]\d+(?:_\d+)*|[xyr]\d?(?:index|numel|mask)"
)


class Names:
    """What each word becomes."""

    def __init__(self) -> None:
        self._new: dict[tuple[str, str], str] = {}
        self._counter = 0
        self._told: dict[Context, dict[str, str]] = {}
        self.paths: dict[str, str] = {}
        """Paths that were redacted."""
        self.folders: dict[str, str] = {}
        """Folders that were redacted, up to their last separator."""
        self.public_paths: set[str] = set()
        """What stayed of them: parts inside well-known packages, names that Python makes up."""
        self.kinds: dict[str, Kind] = {}
        """What a word names, where that is known before it is met."""
        self.users: set[str] = set()
        """Words of the user's code."""
        self.public: set[str] = set()
        """Words that are public in this run: imported from well-known packages, or used in them."""
        self.roots: set[str] = set(vocabulary.roots())
        """Names of torch's modules and others whose parts are listed."""
        self.texts: set[str] = set()
        """Strings of the user's code."""
        self.long_texts = KnownTexts()
        """Those of them that a message may be known by."""
        self.parts: set[str] = set()
        """Names of the user's files and folders."""
        self.modules: set[str] = set()
        """Names under which the user's files import other well-known packages."""

    @property
    def many(self) -> int:
        """How many were replaced."""
        return len(self._new)

    @property
    def given(self) -> set[str]:
        """The names that were given out."""
        return set(self._new.values())

    def redact(self, word: str, context: Context = "code") -> str:
        """The word as it may be shown."""
        told = self.told(context)
        new = told.get(word)
        if new is None:
            new = told[word] = self._redact(word, context)
        return new

    def told(self, context: Context) -> dict[str, str]:
        """What words became so far, and dotted names."""
        return self._told.setdefault(context, {})

    def settle(self) -> None:
        """All words have been met: what each becomes is known now."""
        for told in self._told.values():
            told.clear()

    def note_text(self, text: str) -> None:
        """A string of the user's code."""
        if text not in self.texts:
            self.texts.add(text)
            if len(text) >= _SHORTEST:
                self.long_texts.add(text.strip())

    def _redact(self, word: str, context: Context) -> str:
        composed = self._composed(word, context)
        if composed is not None:
            return composed
        if vocabulary.is_public(word) or word in self.public:
            return word
        if context == "code":
            self.users.add(word)
        elif self._stays(word, context):
            return word
        if context == "generated":
            return self._made_up(word)
        return self.replace(word)

    def _stays(self, word: str, context: Context) -> bool:
        """Beside the user's own names a word of PyTorch's sentences, or of its code, may stand."""
        if context != "sentence" and word in self.users:
            return False
        if context == "generated":
            return word in vocabulary.generated()
        return word in vocabulary.prose() or word in vocabulary.errors()

    def is_known(self, word: str) -> bool:
        """Public, or the user's and replaced."""
        return vocabulary.is_public(word) or word in self.users or word in self.public

    def is_made(self, word: str) -> bool:
        """Known, or of the code that torch writes."""
        made = word in vocabulary.generated() or _INPUT.fullmatch(word) is not None
        return made or self.is_known(word)

    def after_dot(self, word: str, root: str, context: Context = "code") -> str:
        """A part of a dotted name that begins with `root`."""
        if root in self.modules or (root in self.roots and word in vocabulary.dotted()):
            if context == "code":
                # A guard on the environment names it without its root.
                self.public.add(word)
            return word
        return self.redact(word, context)

    def replace(self, word: str, kind: Kind = "v", space: str = "") -> str:
        """Another name, whether or not the word is public. Each `space` has names of its own."""
        key = (space, word)
        if key not in self._new:
            kind = self.kinds.get(word, kind)
            mark = vocabulary.mark_of(word) if kind not in ("text", "key") else ""
            self._counter += 1
            while vocabulary.is_public(f"{kind}{self._counter}"):
                self._counter += 1
            self._new[key] = f"{kind}{self._counter}{'_' if mark else ''}{mark}"
        return self._new[key]

    def _composed(self, word: str, context: Context) -> str | None:
        """Names that torch makes of the user's."""
        if max(word.count(_RESUMED), word.count(_IMPORTED)) > _DEEPEST:
            return None  # Of nobody's making: replaced as a whole.
        if match := _RESUME.fullmatch(word):
            return f"{match[1]}{self.redact(match[2], context)}{match[3]}"
        if match := _IMPORT.fullmatch(word):
            root, *parts = match[2].split("_dot_")
            if vocabulary.is_known_package(root) and root not in vocabulary.roots():
                return word
            first = root if vocabulary.is_public_package(root) else self.redact(root, context)
            rest = [self.after_dot(part, root, context) for part in parts]
            return match[1] + "_dot_".join([first, *rest])
        return None

    def _made_up(self, word: str) -> str:
        """A name in a graph or a kernel: made by torch from an operator's, or from the user's."""
        if word in self.users:
            return self.replace(word)
        if _INPUT.fullmatch(word):
            return word
        if match := _KERNEL.fullmatch(word):
            parts = [self._part(part) for part in match[2].split("_")]
            return match[1] + "_".join(parts) + match[3]
        stem, count = _numbered(word)
        if count:
            redacted = self.redact(stem, "generated")
            # Torch counts its own names up; a long number behind another is the user's.
            if vocabulary.is_public(stem) or len(count) <= _LONGEST_COUNT:
                return redacted + count
        return self.replace(word)

    def _part(self, part: str) -> str:
        known = part.isdigit() or not part or part in vocabulary.op_parts()
        return part if known else self.replace(part)


def _numbered(word: str) -> tuple[str, str]:
    """`add_1_2` as `add` and `_1_2`; no expression, which would try every beginning in turn."""
    end = len(word)
    while (at := word.rfind("_", 0, end)) > 0 and word[at + 1 : end].isdecimal():
        end = at
    return word[:end], word[end:]


# Finds in a text what is known of a run: its paths, the strings of its code.
#
# There may be as many of them as there are lines to search, so none is tried for its own sake:
# paths are walked part by part, strings are looked up by how they begin.


class _Folder:
    """What begins alike: folders by name, and the ends of paths."""

    __slots__ = ("ends", "folders", "lengths")

    def __init__(self) -> None:
        self.folders: dict[str, _Folder] = {}
        self.ends: set[str] = set()
        self.lengths: list[int] = []


class KnownPaths:
    """Paths that may stand anywhere in a text, and may hold anything, blanks too."""

    def __init__(self, paths: Collection[str]) -> None:
        self._top = _Folder()
        folders = {id(self._top): self._top}
        for path in paths:
            node = self._top
            at = 0
            for match in _SEPARATOR.finditer(path):
                node = node.folders.setdefault(path[at : match.end()], _Folder())
                at = match.end()
            node.ends.add(path[at:])
            folders[id(node)] = node
        for node in folders.values():
            node.lengths = sorted({len(end) for end in node.ends}, reverse=True)
        starts = {path[:_START] for path in paths}
        few = len(starts) <= _FEW
        self._starts = re.compile("|".join(map(re.escape, starts)) or "(?!)") if few else None

    def may_be_in(self, text: str) -> bool:
        if self._starts is None:
            return "/" in text or ":" in text
        return self._starts.search(text) is not None

    def end(self, text: str, at: int) -> int:
        """Where the longest path ends that begins at `at`; `at` where none does."""
        found, start = at, at
        node: _Folder | None = self._top
        for _ in range(_MOST_PARTS):
            assert node is not None
            for length in node.lengths:
                end = text[start : start + length]
                if len(end) == length and start + length > found and end in node.ends:
                    found = start + length
                    break
            match = _SEPARATOR.search(text, start, start + _LONGEST_PART)
            node = node.folders.get(text[start : match.end()]) if match else None
            if match is None or node is None:
                break
            start = match.end()
        return found


class KnownTexts:
    """Strings, and whether a line holds one of them."""

    def __init__(self) -> None:
        self._by_start: dict[str, set[str]] = {}
        self._lengths: dict[str, set[int]] = {}
        self._starts: set[int] = set()
        """How long the beginnings are: a short string is its own."""
        self._looked = 0

    def add(self, text: str) -> None:
        start = text[:_START]
        if start:
            self._by_start.setdefault(start, set()).add(text)
            self._lengths.setdefault(start, set()).add(len(text))
            self._starts.add(len(start))

    def is_in(self, line: str) -> bool:
        """Does the line hold one? Where that takes too long to tell, it is taken to."""
        return any(
            self._is_at(line, at, line[at : at + length])
            for length in self._starts
            for at in range(len(line) - length + 1)
            if line[at : at + length] in self._by_start
        )

    def _is_at(self, line: str, at: int, start: str) -> bool:
        lengths, texts = self._lengths[start], self._by_start[start]
        self._looked += sum(lengths)
        if self._looked > _MOST_LOOKED:
            return True
        return any(line[at : at + length] in texts for length in lengths)
