"""What was compiled out of what, as a tree."""

from __future__ import annotations

from compilescope.knowledge.analysis.tree.compile_tree import compile_tree
from compilescope.knowledge.analysis.tree.frames import UnplacedItem
from compilescope.report.blocks import Block, Heading, Paragraph, Tree, note, words
from compilescope.report.links import targets
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section
from compilescope.report.tree_view import Icicle, TreeDrawing

_MOST_ELSEWHERE = 20
"""Chosen: what is read at a glance; the rest is counted."""


def _build(reading: Reading) -> list[Block]:
    seen = compile_tree(reading.run)
    if not seen.frames and not seen.elsewhere:
        return []
    found: list[Block] = []
    drawing = TreeDrawing(seen, reading.root, {site.fingerprint for site in reading.digest.sites})
    branches = drawing.branches()
    icicle = Icicle(seen, drawing, reading.once(targets), reading.root)
    if branches:
        found.append(Tree(branches, icicle.cells(), icicle.left_out))
    if drawing.left_out:
        left_out = count(drawing.left_out, "function")
        found.append(note(f"{left_out} and parts of functions are not drawn in the tree."))
    if seen.elsewhere:
        found.append(Heading("Unplaced", "it is unknown which function led to these"))
        found += [
            Paragraph(words(_elsewhere(one, reading.root)), "-")
            for one in seen.elsewhere[:_MOST_ELSEWHERE]
        ]
        if len(seen.elsewhere) > _MOST_ELSEWHERE:
            found.append(note(f"and {len(seen.elsewhere) - _MOST_ELSEWHERE} more"))
    return found


def _elsewhere(one: UnplacedItem, root: str) -> str:
    text = one.what
    if one.compile_id is not None:
        text = f"{one.compile_id}: {text}"
    if one.file:
        text += f" at {place(one.file, one.line, root)}"
    return text + (f", on rank {one.rank}" if one.rank else "")


SECTION = Section(
    "tree", 60, _build, "Compile tree", "what led to which compilation", in_summary=False
)
