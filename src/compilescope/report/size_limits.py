"""A document that fits: on a terminal so many lines, in a comment so many bytes.

What goes first is the end of a long diff, where a line says what shows all of it. Then items and
rows from the end of the longest list, which is the least expensive end; then sections from the last
one, of causes and of a profiled step only when nothing else is left. Of an item its line and its
explanation stay longest. The last line says what shows the rest.

Where letters are too many, the longest texts lose their end, all to the same length, and say how
much it was. Code, diffs and drawings stay as they are: their renderers cut lines to the width that
there is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from compilescope.report.blocks import (
    Block,
    Branch,
    Diff,
    Document,
    Excerpt,
    Facts,
    Fold,
    Heatmap,
    Item,
    Listing,
    Matrix,
    Panes,
    Paragraph,
    Part,
    Quote,
    SourceFile,
    Span,
    Table,
    Timeline,
    Tree,
    note,
    words,
)

Measure = Callable[[Document], int]
_WHOLE = (Fold, Timeline, Panes, Heatmap, Listing)
_LETTERS_OF_LINE = 200
"""Those that a text needs to fill a line of the widest terminal. Chosen: longer texts have no
room, and Rich would wrap them all to count their lines."""
_FEWEST_ROWS = 2
"""Of a list, and of blocks in an item. Chosen: with fewer they would say nothing; then the whole
section goes."""
_CUT = note("…")
_SHORT_DIFF = 8
"""Lines of a diff that stay while there is anything else to leave out. Chosen: enough to see what
it is about."""
_ASKED_FOR = ("causes", "step")
"""Sections that go after all others, the first of these before the second."""
_SPARE = ("Or:", "Cost:", "More:", "PyTorch:")
"""What an item says besides where, why and what to change."""
_CAUSES = ("summary", "health", "log", "failures", "breaks", "recompiles", "eager", "causes")
"""Sections that come first where not all have room."""


def fit_lines(document: Document, most: int, measure: Measure, rest: str = "") -> Document:
    """At most so many lines, as `measure` counts them. `rest` is the command that shows everything,
    for a document that does not say so itself."""
    parts = tuple(_first_of_part(part, most) for part in document.parts)
    document = msgspec.structs.replace(document, parts=parts)
    document = fit_letters(document, most * _LETTERS_OF_LINE)
    if not _is_long(document, most) and measure(document) <= most:
        return document
    return _Fitting(document, most, measure, rest).fitted()


def _first_of_part(part: Part, most: int) -> Part:
    blocks = _first_lists(part.blocks, most)
    return part if blocks is part.blocks else msgspec.structs.replace(part, blocks=blocks)


def _first_lists(blocks: tuple[Block, ...], most: int) -> tuple[Block, ...]:
    """Without the blocks that come after as many as there may be lines, each of which takes one:
    no need to draw them all to know. Items side by side are one list, which is cut elsewhere."""
    kept: list[Block] = []
    lists = 0
    for at, block in enumerate(blocks):
        lists += not (isinstance(block, Item) and at and isinstance(blocks[at - 1], Item))
        if lists > most:
            return (*kept, note(f"and {len(blocks) - at} more"))
        if isinstance(block, Item | Fold) and len(block.blocks) > most:
            block = msgspec.structs.replace(block, blocks=_first_lists(block.blocks, most))
        kept.append(block)
    return blocks if all(map(operator.is_, kept, blocks)) else tuple(kept)


def _is_long(document: Document, most: int) -> bool:
    """Some list has more entries than there may be lines: no need to draw them all to know."""
    return any(
        len(block.rows) > most if isinstance(block, Table | Facts) else len(blocks) > most
        for part in document.parts
        for _, blocks in _runs(part.blocks)
        for block in blocks[:1]
    )


class _Stretch(msgspec.Struct):
    """Items side by side, or the rows of one block: what can lose entries from its end."""

    part: int
    first: int
    """Of its blocks."""
    blocks: tuple[Block, ...]
    heights: list[int]
    """Of each entry."""
    total: int
    """How many entries there were at first."""
    least: int

    @property
    def height(self) -> int:
        return sum(self.heights)

    def drawn(self) -> list[Block]:
        kept = len(self.heights)
        left_out = self.total - kept
        shown: list[Block] = []
        if isinstance(self.blocks[0], Item):
            shown += self.blocks[:kept]
        elif isinstance(self.blocks[0], Table | Matrix | Facts | Tree):
            shown += [_first_rows(self.blocks[0], kept)] if kept else []
        elif kept:
            return list(self.blocks)
        if left_out and isinstance(self.blocks[0], Item | Table | Matrix | Facts | Tree):
            shown.append(note(f"and {left_out} more" if kept else f"{left_out} not shown"))
        return shown


class _Fitting:
    """Drops entries until the document fits."""

    def __init__(self, document: Document, most: int, measure: Measure, rest: str) -> None:
        self._document, self._most, self._measure, self._rest = document, most, measure, rest
        self._empty = measure(Document("", "", ()))
        self._stretches = [
            self._stretch(number, first, blocks)
            for number, part in enumerate(document.parts)
            for first, blocks in _runs(part.blocks)
        ]
        self._gone: set[int] = set()
        self._shrunk = False

    def fitted(self) -> Document:
        made = self._made()
        while (over := self._measure(made) - self._most) > 0:
            done = (
                self._cut_diffs(over, _SHORT_DIFF)
                or self._shrink(over)
                or self._cut_diffs(over, 0)
                or self._trim(over, self._most // 2)
                or self._drop_last_part()
                or self._trim(over, 0, _REASON)
                or self._drop_last_part(_ASKED_FOR[:1])
                or self._trim(over, 0)
                or self._drop_last_part(_ASKED_FOR)
            )
            if not done:
                # What is left is whole or nothing: better too long than without its point.
                return made if self._gone or self._shrunk else self._document
            made = self._made()
        return made

    def _stretch(self, part: int, first: int, blocks: tuple[Block, ...]) -> _Stretch:
        one = blocks[0]
        if isinstance(one, Item):
            shown = [self._height(block) for block in blocks[: self._most]]
            return _Stretch(part, first, blocks, shown, len(blocks), 1)
        if isinstance(one, Tree):
            nodes = sum(1 for _ in _nodes(one.branches))
            each = max(1, self._height(one) // max(nodes, 1))
            return _Stretch(part, first, blocks, [each] * nodes, nodes, _FEWEST_ROWS)
        if isinstance(one, Table | Matrix | Facts):
            total = len(one.rows)
            base = self._height(_first_rows(one, 1)) - 1
            shown = [
                self._height(_only_row(one, number)) - base
                for number in range(min(total, self._most))
            ]
            return _Stretch(part, first, blocks, shown, total, _FEWEST_ROWS)
        return _Stretch(part, first, blocks, [self._height(one)], 1, 0)

    def _height(self, block: Block) -> int:
        return self._measure(Document("", "", (Part("", "", (block,)),))) - self._empty

    def _shrink(self, over: int) -> bool:
        """About so many lines, from the end of whichever list is the longest."""
        done = 0
        while done < over:
            able = [each for each in self._stretches if len(each.heights) > each.least]
            if not able:
                break
            longest = max(able, key=lambda each: each.height)
            done += longest.heights.pop()
        self._shrunk |= done > 0
        return done > 0

    def _drop_last_part(self, among: tuple[str, ...] = ()) -> bool:
        """Of those that hold lists and have a title for the last line to name. The first part
        stays: it says what the answer is; those that were asked for, unless they are what is to
        be dropped."""
        parts = self._document.parts
        able = [each.part for each in self._stretches if each.part and parts[each.part].title]
        if among:
            able = [n for name in reversed(among) for n in able if parts[n].id == name]
        else:
            able = [n for n in able if parts[n].id not in _ASKED_FOR]
        if not able or not self._rest:
            return False
        self._gone.add(able[-1])
        self._stretches = [each for each in self._stretches if each.part != able[-1]]
        return True

    def _cut_diffs(self, over: int, least: int) -> bool:
        """The ends of diffs that a command shows whole, of which so many lines may stay."""
        for stretch in self._stretches:
            for number, block in enumerate(stretch.blocks[: len(stretch.heights)]):
                if not isinstance(block, Item):
                    break
                cut = _with_short_diff(block, over, least)
                if cut is not None:
                    stretch.heights[number] = self._height(cut)
                    stretch.blocks = (
                        *stretch.blocks[:number],
                        cut,
                        *stretch.blocks[number + 1 :],
                    )
                    self._shrunk = True
                    return True
        return False

    def _trim(self, over: int, higher: int, need: int = 9) -> bool:
        """Whole blocks from the end of the tallest item that is higher than this and has any that
        are needed less than so much."""
        able = [
            (height, each, number)
            for each in self._stretches
            for number, (height, block) in enumerate(zip(each.heights, each.blocks, strict=False))
            if isinstance(block, Item)
            and len(block.blocks) > _FEWEST_ROWS
            and height > higher
            and any(_need(each) < need for each in block.blocks if each != _CUT)
        ]
        if not able:
            return False
        _, stretch, number = max(able, key=lambda found: found[0])
        item = stretch.blocks[number]
        assert isinstance(item, Item)
        inside, done = [block for block in item.blocks if block != _CUT], 0
        while done < over and len(inside) >= _FEWEST_ROWS:
            least = _least_needed(inside)
            if _need(inside[least]) >= need:
                break
            done += self._height(inside.pop(least))
        trimmed = msgspec.structs.replace(item, blocks=(*inside, _CUT))
        blocks = list(stretch.blocks)
        blocks[number] = trimmed
        stretch.blocks = tuple(blocks)
        stretch.heights[number] = self._height(trimmed)
        self._shrunk |= done > 0
        return done > 0

    def _made(self) -> Document:
        parts: list[Part] = []
        for number, part in enumerate(self._document.parts):
            if number in self._gone:
                continue
            blocks: list[Block] = []
            at = 0
            for each in self._stretches:
                if each.part == number:
                    blocks += [*part.blocks[at : each.first], *each.drawn()]
                    at = each.first + len(each.blocks)
            blocks += part.blocks[at:]
            parts.append(msgspec.structs.replace(part, blocks=tuple(blocks)))
        titles = [self._document.parts[number].title for number in sorted(self._gone)]
        named = [title for title in titles if title]
        absent = f"Not shown: {', '.join(named)}." if named else ""
        if self._rest:
            last = Paragraph(words("Everything: ", Span(self._rest, "code")), unwrapped=True)
            lead = [note(absent)] if absent else []
            parts.append(Part("rest", "", (*lead, last)))
        return msgspec.structs.replace(self._document, parts=tuple(parts))


def _with_short_diff(item: Item, over: int, least: int) -> Item | None:
    """With fewer lines of its first diff that is longer; None where there is none."""
    for at, block in enumerate(item.blocks):
        if not isinstance(block, Diff) or not block.whole:
            continue
        lines = block.text.splitlines()
        told = Paragraph(words(Span("whole diff: ", "dim"), Span(block.whole, "code")))
        said = told in item.blocks
        kept = max(least, len(lines) - over - (not said))
        if len(lines) - kept < 1 + (not said):
            continue
        shorter = [Diff("\n".join(lines[:kept]) + "\n", block.whole)] if kept else []
        rest = item.blocks[at + 1 :]
        return msgspec.structs.replace(
            item, blocks=(*item.blocks[:at], *shorter, *(() if said else (told,)), *rest)
        )
    return None


def _least_needed(blocks: Sequence[Block]) -> int:
    """The last block that an item can best do without: asides, diffs, what to try, and at last why
    it is so, and where."""
    return max(range(len(blocks)), key=lambda number: (-_need(blocks[number]), number))


_REASON = 3
"""How much an item needs the reason of what it is about."""


def _need(block: Block) -> int:
    if isinstance(block, Paragraph):
        if block.hanging in _SPARE:
            return 0
        if block.words[:1] and block.words[0].style == "dim" and block != _CUT:
            return 1  # What is known of the change, and what shows all of it.
        return _REASON - 1 if block.hanging and block.hanging != "Why:" else _REASON
    if isinstance(block, Fold | Quote):
        return 0
    return 1 if isinstance(block, Diff) else _REASON + 1


def _runs(blocks: Sequence[Block]) -> Iterator[tuple[int, tuple[Block, ...]]]:
    """Where each stretch begins, and its blocks."""
    at = 0
    while at < len(blocks):
        end = at + 1
        if isinstance(blocks[at], Item):
            while end < len(blocks) and isinstance(blocks[end], Item):
                end += 1
        if isinstance(blocks[at], (Item, Table, Matrix, Facts, Tree, *_WHOLE)):
            yield at, tuple(blocks[at:end])
        at = end


def _first_rows(block: Table | Matrix | Facts | Tree, kept: int) -> Table | Matrix | Facts | Tree:
    if isinstance(block, Tree):
        return Tree(_pruned(block.branches, [kept]))
    return msgspec.structs.replace(block, rows=block.rows[:kept])


def _pruned(branches: Iterable[Branch], left: list[int]) -> tuple[Branch, ...]:
    """The first nodes in the order in which they are drawn, as many as are `left`."""
    kept = []
    for branch in branches:
        if left[0] <= 0:
            break
        left[0] -= 1
        below = _pruned(branch.branches, left)
        kept.append(msgspec.structs.replace(branch, branches=below))
    return tuple(kept)


def _nodes(branches: Iterable[Branch]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from _nodes(branch.branches)


def _only_row(block: Table | Matrix | Facts, number: int) -> Table | Matrix | Facts:
    return msgspec.structs.replace(block, rows=block.rows[number : number + 1])


def fit_bytes(document: Document, most: int, draw: Callable[[Document], str], rest: str) -> str:
    """Markdown of at most so many bytes: causes first, whole blocks only; the rest is named. What
    cannot have room is cut before it is drawn: one long text may stand in each of many rows."""
    document = fit_letters(document, most)
    ordered = msgspec.structs.replace(document, parts=tuple(sorted(document.parts, key=_rank)))
    if _size(ordered, draw) <= most:
        return draw(ordered)
    names = [part.title or part.id for part in ordered.parts]
    longest = [f"{name} (1000 of 1000)" for name in names]
    room = most - _size(_with_rest(document, (), longest, rest), draw)
    parts: list[Part] = []
    left_out: list[str] = []
    for part, name in zip(ordered.parts, names, strict=True):
        room -= _size(Document("", "", (msgspec.structs.replace(part, blocks=()),)), draw)
        kept, room = _first_blocks(part.blocks, room, draw)
        lost = len(part.blocks) - len(kept)
        if kept:
            parts.append(msgspec.structs.replace(part, blocks=kept))
        if lost:
            left_out.append(f"{name} ({lost} of {len(part.blocks)})" if kept else name)
    return draw(_with_rest(document, parts, left_out, rest))


def _first_blocks(
    blocks: Iterable[Block], room: int, draw: Callable[[Document], str]
) -> tuple[tuple[Block, ...], int]:
    """Those that have room, and the room that is left; none after the first without."""
    kept: list[Block] = []
    for block in blocks:
        size = _size(Document("", "", (Part("", "", (block,)),)), draw)
        if size > room:
            break
        room -= size
        kept.append(block)
    return tuple(kept), room


def _size(document: Document, draw: Callable[[Document], str]) -> int:
    return len(draw(document).encode())


def _rank(part: Part) -> int:
    return _CAUSES.index(part.id) if part.id in _CAUSES else len(_CAUSES)


def _with_rest(
    document: Document, parts: Iterable[Part], left_out: Iterable[str], rest: str
) -> Document:
    absent = f"Left out for size: {', '.join(left_out)}. Everything: "
    last = Paragraph(words(absent, Span(rest, "code")))
    return msgspec.structs.replace(document, parts=(*parts, Part("rest", "", (last,))))


T = TypeVar("T")
SHORT_TEXT = 2_000
"""Letters that a text may always have. Chosen: a screen of 80 columns, more than we ever say
ourselves."""
_LINE = 80
"""Letters, on the usual terminal."""
TAB = 8
"""Columns, on every terminal."""
_CUT_ELSEWHERE = (Diff, Excerpt, Heatmap, Listing, Panes, SourceFile)


def fit_letters(document: Document, most: int) -> Document:
    """The same object where all texts have room, which is nearly always. Its findings stay whole:
    no drawing reads them."""
    drawn = msgspec.structs.replace(document, findings=(), accepted=None)
    kept = fit_texts(drawn, most)
    if kept is drawn:
        return document
    return msgspec.structs.replace(kept, findings=document.findings, accepted=document.accepted)


def fit_texts(value: T, most: int) -> T:
    """The same for blocks that belong to no document."""
    lengths = sorted(map(_room, _long_texts(value)), reverse=True)
    if sum(lengths) <= most:
        return value
    return _cut(value, _length_for(lengths, most))  # type: ignore[no-any-return]


def _room(text: str) -> int:
    """A line break takes the rest of its line, a tab the way to its stop."""
    return len(text) + _LINE * text.count("\n") + TAB * text.count("\t")


def _length_for(lengths: list[int], most: int) -> int:
    """That of all texts that are longer, so that together they have at most so many letters."""
    room = most
    for done, length in enumerate(reversed(lengths)):
        left = len(lengths) - done
        if length * left > room:
            return max(room // left, SHORT_TEXT)
        room -= length
    return lengths[0]


def _long_texts(value: Any) -> list[str]:
    """In a loop, without a call for each: a document has hundreds of thousands of values."""
    found = []
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            if len(one) > SHORT_TEXT:
                found.append(one)
        elif isinstance(one, tuple):
            left += one
        elif isinstance(one, msgspec.Struct) and not isinstance(one, _CUT_ELSEWHERE):
            left += [getattr(one, name) for name in one.__struct_fields__]
    return found


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return _first_letters(value, longest)
    if isinstance(value, tuple):
        parts = tuple(_cut(each, longest) for each in value)
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else parts
    if isinstance(value, msgspec.Struct) and not isinstance(value, _CUT_ELSEWHERE):
        changed = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            new = _cut(old, longest)
            if new is not old:
                # Half an address leads nowhere.
                changed[name] = "" if name in ("url", "target", "anchor") else new
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _first_letters(text: str, longest: int) -> str:
    if len(text) <= SHORT_TEXT or _room(text) <= longest:
        return text
    kept = text[: longest * len(text) // _room(text)]
    lines = kept.split("\n", longest // _LINE)
    if len(lines) > longest // _LINE:
        kept = "\n".join(lines[:-1])
    return f"{kept}… ({len(text) - len(kept):,} more letters; JSON has them all)"
