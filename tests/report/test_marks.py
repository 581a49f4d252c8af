"""A line of a stage gets its marks piece by piece, exactly as if it were lexed."""

from __future__ import annotations

import random
from pathlib import Path

from compilescope.report.render import marks
from compilescope.report.render.code_colors import code_tokens
from compilescope.texts import visible

_PARTS = (
    " ", ".", "x", "abs", "self", "print", "if", "is", "and", "None", "yield", "from ", "import ",
    "def ", "1", ".5", "1e-5", "0x1f", "1.", "2j", "'", '"', "'''", '"""', "f'", 'b"', "rb'", "u",
    "#", "@", "{", "}", "{a['b']}", "%d", "(", "]", "_", "__", "__init__", "…", "\t", "\\", "\x1b",
    ",", "-", "e-",
)  # fmt: skip


def _lines() -> list[str]:
    made = random.Random(7)
    own = Path(marks.__file__).read_text(encoding="utf-8").splitlines()
    mixed = ["".join(made.choices(_PARTS, k=made.randint(1, 9))) for _ in range(20_000)]
    return ["", *own, *mixed]


def test_marks_are_those_of_a_line_that_is_lexed() -> None:
    for line in _lines():
        assert marks.marked_line(line) == marks._by_likeness(visible(line)), repr(line)


def test_a_line_of_a_graph_is_marked_as_its_tokens_are() -> None:
    line = 'add: "f32[8, 64]" = torch.ops.aten.add.Tensor(x, 1.5) if True else max(x)  # sum'
    assert marks.marked_line(line) == marks._joined(code_tokens(line)[0])
    assert "\x03" in marks.marked_line(line)
