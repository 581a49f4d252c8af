"""Redacts sentences: what PyTorch says of a break, tracebacks, messages of exceptions.

PyTorch's own words stay. Between quotes and backticks, in brackets of a debug context and in
indented lines the user's names come first; a line of a message with a word that nobody knows is
the user's own text and goes as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compilescope.knowledge.registry.taxonomy import load_taxonomy
from compilescope.report.sharing.redaction import vocabulary
from compilescope.report.sharing.redaction.code import Words
from compilescope.report.sharing.redaction.files import redact_path
from compilescope.report.sharing.redaction.lexer import NUMBER
from compilescope.report.sharing.redaction.names import Context, KnownPaths

LineOf = Callable[[str, int, str], str]
"""(file, line number, its text) -> the line, redacted."""

_FILE = re.compile(r'(?P<before>.*?\bFile ")(?P<file>[^"]*)(?P<line>", line (?P<number>\d{1,9}))')
_TRACE = re.compile(
    _FILE.pattern + r"(?P<in>, in )(?P<function>.+?)(?:(?P<code>, code: )(?P<text>.*))?"
)
_PLACE = re.compile(
    r"(?P<before>(?:(?!# File: ).)*# File: )(?P<file>(?:(?!:\d{1,9} in ).){1,1000})"
    r"(?P<line>:(?P<number>\d{1,9}))(?P<in> in )"
    r"(?P<function>(?:(?!, code: ).){1,300})(?:(?P<code>, code: )(?P<text>.*))?"
)
_DYNAMOS = re.compile(r"  (?:Explanation|Hint|Developer debug context): | For more details about")
_COMMENT = re.compile(r"(?:^|\s)#\s(?P<text>.*)")
_INDUCTORS = re.compile(
    r"\s*(?:Topologically Sorted|Source Nodes|Source node|Original ATen|Graph fragment|kernel path"
    r"|AOT ID|File\b|%|\S+ => )"
)
_WORD = re.compile(r"[^\W\d]\w*")
_START = re.compile(r"(?<![\s#-])[\s#-]*File:? \"?$")
_MOST_LINES = 500_000
"""That are remembered with what became of them. Chosen: it bounds memory; lines come again."""
_LONGEST_TOLD = 20_000
"""Letters of a line of a message. Chosen: nobody reads a longer one; it goes as a whole, so that
its length costs hardly anything."""
_CARETS = re.compile(r"\s*(?:-\s*)?[~^]+\s*")
_INDENTED = re.compile(r"(?:\s{4,}|\s*-\s{2,})\S")
_RAISED = re.compile(
    r"(\s*(?:[\w.]+(?:Error|Exception|Warning|Interrupt|Exit|Failed|Unsupported): )+)(.*)", re.S
)
_OWN_SITES = ("pytorch.org", "meta-pytorch.github.io", "docs.python.org", "github.com/pytorch")
_QUOTED = (
    r"`(?P<ticks>[^`\n]+)`"
    r"|(?<!\w)'(?P<single>[^'\n]*)'(?!\w)"
    r"|\"(?P<double>[^\"\n]*)\""
)
_PATHS = (
    r"(?<![\w.)\]])(?P<path>(?:[A-Za-z]:)?[/\\]"
    r"[^\s\"'`<>|:;,()\[\]{}*?]*[^\s\"'`<>|:;,.()\[\]{}*?])"
    r"|(?<![\w./-])(?P<relative>[\w.-]+(?:/[\w.-]+)*\.py)\b"
)
_KEPT = (
    r"(?<![\w.])(?P<kept>\d{1,5}(?:x\d{1,5})+|\d{1,5}/\d{1,5}(?:_\d+)?"
    r"|(?<=\.py:)\d+|(?<=>:)\d+|(?<=line )\d+)(?![\w.])"
)
_DOTTED = r"(?P<dotted>[^\W\d]\w*(?:\.[^\W\d]\w*)*)"
_NUMBERS = rf"(?P<number>(?<![\w.])(?:{NUMBER.pattern}))|(?P<digits>\d+)"
_LONG_ONES = r"(?P<url>https?://[^\s\"'`<>()]+)" rf"|{_QUOTED}|{_PATHS}"
_ANY_SPAN = rf"{_LONG_ONES}|{_KEPT}|{_DOTTED}|{_NUMBERS}"
_PLAIN_GAP, _GAP = r"[^\w.`'\"]{3,}", r"[^\w.`'\"/\\-]{3,}"
"""What begins no span, and is passed over in one go: with the word before it, if there is one."""
_PLAIN_SPAN = re.compile(
    rf"{_DOTTED}(?:{_PLAIN_GAP})?|(?P<gap>{_PLAIN_GAP})|{_QUOTED}|{_KEPT}|{_NUMBERS}"
)
"""Of a line without any path. Nothing else begins with a letter, and most are words."""
_SPAN = re.compile(rf"(?P<gap>{_GAP})|{_LONG_ONES}|{_KEPT}|{_DOTTED}(?:{_GAP})?|{_NUMBERS}")
_SPAN_OR_BRACKET = re.compile(rf"{_ANY_SPAN}|(?P<bracket>[()\[\]{{}}])")
_START_OR_SPAN = re.compile(rf"(?P<known>(?=/|\w:))|{_SPAN_OR_BRACKET.pattern}")
"""With where a known path may begin: they come first, and may hold anything, blanks too."""
_KNOWN = re.compile(r"/|\w:")


def _span_of(line: str) -> re.Pattern[str]:
    """No expression but for those that are there: graphs have millions of words."""
    paths = "/" in line or "\\" in line or ".py" in line
    return _SPAN if paths else _PLAIN_SPAN


class Prose:
    """Sentences of one run."""

    def __init__(self, words: Words, line_of: LineOf, known_paths: list[str]) -> None:
        self._words = words
        self._line_of = line_of
        self._known = KnownPaths([path for path in known_paths if _KNOWN.match(path)])
        self.kept: set[str] = set()
        """Texts that stay to the letter."""
        self._done: dict[tuple[str, str], tuple[str, tuple[str, int] | None]] = {}
        self._learning = False
        self._known_words: set[str] = set()
        """Public, or the user's and replaced: none of them is ever unknown again."""
        self._titles = frozenset(
            name for c in load_taxonomy() for name in (*c.ids.values(), *c.types)
        )

    def title(self, text: str) -> str:
        """The type of a break: PyTorch's own stays to the letter."""
        if text in self._titles:
            self.kept.add(text)
            return text
        return self.sentences(text)

    def sentences(self, text: str) -> str:
        """PyTorch's words, with the user's in between."""
        return self._lines(text, self._sentence)

    def debug_context(self, text: str) -> str:
        """As `sentences`; what stands in brackets is rather the user's."""
        return self._lines(text, self._debug_context)

    def message(self, text: str) -> str:
        """Redact the message of an exception, which may be PyTorch's words or the user's."""
        return self._lines(text, self._told)

    def generated(self, text: str) -> str:
        """A graph or a kernel."""
        return self._lines(text, self._generated)

    def learn(self) -> None:
        """From here on only the words of lines count, not what becomes of them."""
        self._learning = True

    def forget(self) -> None:
        """All has been learned: from here on it is redacted."""
        self._learning = False
        self._done.clear()

    def _sentence(self, line: str) -> str:
        if len(line) > _LONGEST_TOLD:
            return self._words.whole(line)
        return self._spans(line, self._context(line))

    def _debug_context(self, line: str) -> str:
        if len(line) > _LONGEST_TOLD:
            return self._words.whole(line)
        return self._spans(line, "sentence", brackets=True)

    def _generated(self, line: str) -> str:
        comment = _COMMENT.search(line)
        if comment is not None and not self._is_inductors(comment["text"]):
            # A kernel of the user's own is in the code as it was written.
            line = line[: comment.start("text")]
        return self._spans(line, "generated", quotes=False)

    def _is_inductors(self, comment: str) -> bool:
        known = self._words.names.is_made
        return bool(_INDUCTORS.match(comment)) or all(map(known, _WORD.findall(comment)))

    def _lines(self, text: str, redact: Callable[[str], str]) -> str:
        """Line by line; after the place of a traceback comes the user's line."""
        out: list[str] = []
        place: tuple[str, int] | None = None
        for line in text.split("\n"):
            if place is not None and line[:1].isspace() and not _CARETS.fullmatch(line):
                indent = len(line) - len(line.lstrip(" -"))
                out.append(line[:indent] + self._line_of(*place, line[indent:]))
                place = None
                continue
            key = (redact.__name__, line)
            if key not in self._done:
                if len(self._done) > _MOST_LINES:
                    self._done.clear()
                self._done[key] = self._line(line, redact)
            new, after = self._done[key]
            out.append(new)
            place = after or (place if _CARETS.fullmatch(line) else None)
        return "\n".join(out)

    def _line(self, line: str, redact: Callable[[str], str]) -> tuple[str, tuple[str, int] | None]:
        """The line, and the place of the one that follows where that is a line of code."""
        if line.strip() and self._words.is_beyond(line):
            return self._words.whole(line), None
        match = None
        if "File" in line:
            match = _TRACE.fullmatch(line) or _PLACE.fullmatch(line)
        if match is None:
            return line if _CARETS.fullmatch(line) else redact(line), None
        follows = match.re is _TRACE and match["text"] is None
        return self._place(match), (match["file"], int(match["number"])) if follows else None

    def _place(self, match: re.Match[str]) -> str:
        file = redact_path(self._words.names, match["file"])
        start = _START.search(match["before"])
        before = match["before"]
        if start is not None:
            before = self._spans(before[: start.start()], "quoted") + start[0]
        text = (
            f"{before}{file}{match['line']}{match['in']}{self._words.function(match['function'])}"
        )
        if match["text"] is not None:
            code = self._line_of(match["file"], int(match["number"]), match["text"])
            text += f"{match['code']}{code}"
        return text

    def _context(self, line: str) -> Context:
        return "quoted" if _INDENTED.match(line) else "sentence"

    def _told(self, line: str) -> str:
        """The line, if every word of it is PyTorch's or known to be the user's; else a number."""
        if line in self._titles:
            self.kept.add(line)
            return line
        prefix, rest = "", line
        if match := _RAISED.fullmatch(line):
            prefix, rest = self._words.code(match[1]), match[2]
        if self._is_theirs(rest, wide=_DYNAMOS.match(line) is not None):
            indent = rest[: len(rest) - len(rest.lstrip())]
            return prefix + indent + self._words.names.replace(rest.strip(), "text", "text")
        return prefix + self._spans(rest, self._context(line))

    def _is_theirs(self, line: str, *, wide: bool) -> bool:
        """Does the line go as a whole? Only who knows all of the run's words can tell; until then
        its words are learned."""
        if len(line) > _LONGEST_TOLD:
            return True
        if self._words.beyond:
            return True  # Not all strings of the user's are known, of which it may be one.
        text = "" if self._learning else line.strip()
        return bool(text) and (self._unknown_words(line, wide) or self._says_a_string(text))

    def _says_a_string(self, line: str) -> bool:
        """Does it hold a string of the user's code?"""
        return self._words.names.long_texts.is_in(line)

    def _unknown_words(self, line: str, wide: bool) -> bool:
        """`wide`: a line in the form of Dynamo's messages may have any word that they have."""
        listed = vocabulary.prose() if wide else vocabulary.errors()
        known = self._known_words
        dotted: Iterator[str]
        if self._known.may_be_in(line):
            spans = self._found(line)
            dotted = (line[start:end] for kind, start, end in spans if kind == "dotted")
        else:
            found = _span_of(line).finditer(line)
            dotted = (match["dotted"] for match in found if match.lastgroup == "dotted")
        for word in (word for each in dotted for word in each.split(".")):
            if word not in listed and word not in known:
                if not self._words.names.is_known(word):
                    return True
                known.add(word)
        return False

    def _found(self, line: str) -> Iterator[tuple[str, int, int]]:
        """Kind, start and end of all that may be the user's, and of brackets."""
        at = 0
        while (here := _START_OR_SPAN.search(line, at)) is not None:
            start = here.start()
            if here.lastgroup == "known":
                at = self._known.end(line, start)
                if at > start:
                    yield "known", start, at
                    continue
                other = _SPAN_OR_BRACKET.match(line, start)
                if other is None:
                    at = start + 1
                    continue
                here = other
            at = here.end()
            yield here.lastgroup or "", start, at

    def _spans(
        self, line: str, context: Context, *, quotes: bool = True, brackets: bool = False
    ) -> str:
        """`brackets`: what stands in them is quoted."""
        if brackets or self._known.may_be_in(line):
            return self._parted_spans(line, context, quotes=quotes, brackets=brackets)
        told = self._words.names.told(context)

        def redacted(match: re.Match[str]) -> str:
            # This is called for millions, and nearly all of them are words that are known.
            if match.lastgroup == "dotted":
                text, word = match.group(0, "dotted")
                new = told.get(word) or self._redacted("dotted", word, context, quotes)
                return new if text is word else new + text[len(word) :]
            if match.lastgroup == "gap":
                return match[0]
            return self._redacted(match.lastgroup or "", match[0], context, quotes)

        return _span_of(line).sub(redacted, line)

    def _parted_spans(self, line: str, context: Context, *, quotes: bool, brackets: bool) -> str:
        out: list[str] = []
        at, depth = 0, 0
        for kind, start, end in self._found(line):
            if kind == "bracket":
                depth = max(0, depth + (1 if line[start] in "([{" else -1))
                continue
            inner: Context = "quoted" if brackets and depth else context
            out += (line[at:start], self._redacted(kind, line[start:end], inner, quotes))
            at = end
        return "".join((*out, line[at:]))

    def _redacted(self, kind: str, text: str, context: Context, quotes: bool) -> str:
        words = self._words
        if kind == "dotted":
            return words.dotted(text, context)
        if kind == "kept":
            return text
        if kind in ("number", "digits"):
            return words.numbers.redact(text)
        if kind == "url":
            if not any(f"//{site}" in text or f".{site}" in text for site in _OWN_SITES):
                return words.names.replace(text, "text", "text")
            self.kept.add(text)
            return text
        if kind in ("known", "path", "relative"):
            return redact_path(words.names, text)
        inside = text[1:-1]
        if not inside:
            return text
        if not quotes:
            return text[0] + self._spans(inside, context, quotes=False) + text[-1]
        if kind == "ticks":
            return f"`{words.code(inside, 'quoted')}`"
        if " " in inside.strip():
            return text[0] + self._told(inside) + text[-1]
        return text[0] + words.string(inside, "quoted") + text[-1]
