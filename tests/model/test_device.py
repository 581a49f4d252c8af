"""Device files: what is read, and what is said of a file that is wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from compilescope.backends.device_files import FOLDER, find_device, find_devices, shipped_devices
from compilescope.base.errors import ToolError
from compilescope.knowledge.rules.hardware.checks import check_graph
from compilescope.knowledge.rules.hardware.constraint import Breach
from compilescope.record.byte_counts import parse_bytes, shown_bytes
from compilescope.record.device import Device, parse_comparison
from compilescope.record.device_problems import key_lines
from compilescope.record.devicefile import examine_device, parse_device, read_device
from compilescope.record.graph import Call, Graph, Node, TensorInfo
from docs_pages import page_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GOOD = """
name = "my-chip"

[dtypes]
supported = ["float16"]
per_op."aten.mm" = ["float16", "float32"]

[[shapes.alignment]]
multiple = 16

[[shapes.alignment]]
multiple = 32
dims = [-2]
ops = ["aten.mm"]
otherwise = "padded"

[memory]
peak_bytes = "1.5 GiB"

[ops]
denied = ["aten.sort"]
conditions = [{ op = "aten.convolution", when = "groups > 1" }]
"""


def test_a_good_file() -> None:
    device = parse_device(GOOD, "my.toml")
    assert device.dtypes.per_op == {"aten.mm": ("float16", "float32")}
    assert [rule.multiple for rule in device.shapes.alignment] == [16, 32]
    assert device.memory.peak_bytes == 3 * 2**29
    assert device.ops.conditions[0].when == "groups > 1"


WRONG = [
    ('name = "x"\ntitel = "y"\n', 2, "titel: unknown key", "Did you mean title?"),
    ("title = 'x'\n", 1, "the key name is missing", ""),
    ("name = 3\n", 1, "name: expected a string, got 3", ""),
    ('name = "a b"\n', 1, "name: 'a b' is not a name of letters", ""),
    ('name = "x"\ndtypes = 3\n', 2, "dtypes: expected a table, got 3", ""),
    ('name = "x"\n[dtypes]\n\nsupported = "float16"\n', 4, "dtypes.supported: expected an arr", ""),
    (
        'name = "x"\n[dtypes]\nsupported = [\n  "float16",\n  "fp32",\n]\n',
        5,
        "dtypes.supported: 'fp32' is not a dtype",
        "Did you mean float32?",
    ),
    (
        'name = "x"\n[dtypes.per_op]\n"aten.mm" = ["float17"]\n',
        3,
        "dtypes.per_op.aten.mm: 'float17' is not a dtype",
        "Did you mean float16?",
    ),
    (
        'name = "x"\n[dtypes]\nwider_integers = "narrowed"\n',
        3,
        "dtypes.wider_integers: has no effect without integer_width",
        "",
    ),
    (
        'name = "x"\n[[shapes.alignment]]\nmultiple = 8\n[[shapes.alignment]]\nmultiple = 0\n',
        5,
        "shapes.alignment.multiple: 0 allows nothing",
        "",
    ),
    (
        'name = "x"\n[[shapes.alignment]]\ndims = [-1]\n',
        2,
        "shapes.alignment: the key multiple is missing",
        "",
    ),
    (
        'name = "x"\n[layout]\nformats = ["channel_last"]\n',
        3,
        "layout.formats: 'channel_last' is not one of contiguous, channels_last",
        "Did you mean channels_last?",
    ),
    (
        'name = "x"\nmemory = { peak_bytes = "lots" }\n',
        2,
        "memory.peak_bytes: 'lots' is not a number of bytes",
        "",
    ),
    (
        'name = "x"\n[ops]\nconditions = [\n  {op = "aten.mm", when = "a > 1"},\n'
        '  {op = "aten.mm", when = "groups"},\n]\n',
        5,
        "ops.conditions.when: 'groups' is not a comparison such as `groups > 1`",
        "",
    ),
    (
        'name = "x"\n[ops]\ndenied = ["aten.sort now"]\n',
        3,
        "ops.denied: 'aten.sort now' is not an operator such as",
        "",
    ),
    (
        'name = "x"\n[ops]\nallowed = ["aten.a"]\ndenied = ["aten.a"]\n',
        4,
        "ops.denied: aten.a is also listed as allowed",
        "",
    ),
    ('name = "x"\n[ops\n', 2, "not TOML", ""),
    ('name = "x"\n[shapes]\nmax_rank = 2.5\n', 3, "shapes.max_rank: expected a whole number", ""),
]


@pytest.mark.parametrize(("text", "line", "words", "hint"), WRONG)
def test_a_wrong_file_is_named_by_line_and_key(text: str, line: int, words: str, hint: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_device(text, "my.toml")
    assert caught.value.message.startswith(f"my.toml:{line}: {words}")
    assert caught.value.hint == hint or not hint


def test_all_problems_are_told_at_once() -> None:
    text = 'titel = "x"\n[shapes]\nmax_rnk = 3\nmax_size = "9"\n'
    found = [(problem.line, str(problem)) for problem in examine_device(text).problems]
    assert found == [
        (1, "titel: unknown key"),
        (1, "the key name is missing"),
        (3, "shapes.max_rnk: unknown key"),
        (4, "shapes.max_size: expected a whole number, got the string '9'"),
    ]
    with pytest.raises(ToolError) as caught:
        parse_device(text, "my.toml")
    assert caught.value.hint.endswith("3 more: compilescope devices check my.toml")


def test_values_are_looked_at_though_keys_are_wrong() -> None:
    text = (
        "name = 5\n[shapes]\nmax_rank = -3\nmax_size = 2.5\n"
        '[[shapes.alignment]]\nmultiple = "x"\n[[shapes.alignment]]\nmultiple = 0\n'
        '[dtypes]\nsupported = [3, "fp32"]\n'
    )
    assert [(problem.line, str(problem)) for problem in examine_device(text).problems] == [
        (1, "name: expected a string, got 5"),
        (3, "shapes.max_rank: -3 allows nothing; it must be at least 1"),
        (4, "shapes.max_size: expected a whole number, got 2.5"),
        (6, "shapes.alignment.multiple: expected a whole number, got the string 'x'"),
        (8, "shapes.alignment.multiple: 0 allows nothing; it must be at least 1"),
        (10, "dtypes.supported: expected a string, got 3"),
        (10, "dtypes.supported: 'fp32' is not a dtype"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f'name = "x"\n[shapes]\nmax_rank = {"9" * 5000}\n', 3, "a number has too many digits"),
        (f'name = "x"\n{".".join(["a"] * 50_000)} = 1\n', 1, "nested too deeply"),
        (f"[{'.'.join(['a'] * 50_000)}]\n", 1, "nested too deeply"),
        (f'name = "x"\nnote = {"[" * 50_000}{"]" * 50_000}\n', 1, "nested too deeply"),
        ("\0" * 100, 1, "not TOML"),
        ("", 1, "the key name is missing"),
    ],
)
def test_files_that_nobody_wrote_by_hand(text: str, line: int, words: str) -> None:
    (problem,) = examine_device(text).problems
    assert problem.line == line and words in str(problem)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be read: No such file"):
        read_device(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(ToolError, match="is not UTF-8 text"):
        read_device(tmp_path / "bytes.toml")
    (tmp_path / "large.toml").write_text(f'name = "x"\nnote = "{"y" * 2**20}"\n')
    with pytest.raises(ToolError, match="larger than 1 MiB"):
        read_device(tmp_path / "large.toml")


def test_a_mark_at_the_beginning_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text('name = "x"\n', encoding="utf-8-sig")
    assert read_device(tmp_path / "marked.toml").name == "x"


def test_several_devices_have_several_names(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('name = "npu-a"\n')
    own = str(tmp_path / "own.toml")
    assert [d.name for d in find_devices(["npu-a", "vision-c", "npu-a"])] == ["npu-a", "vision-c"]
    assert len(find_devices([own, str(tmp_path / "." / "own.toml")])) == 1
    with pytest.raises(ToolError, match=r"npu-a and .*own\.toml are both named npu-a"):
        find_devices(["npu-a", own])


def test_shipped_devices_are_named_by_their_files_and_as_examples() -> None:
    names = [device.name for device in shipped_devices()]
    assert names == sorted(path.stem for path in FOLDER.glob("*.toml"))
    assert len(names) >= 4
    for device in shipped_devices():
        kind = "Default: " if device.name == "generic" else "Example: "
        assert device.title.startswith(kind) and device.note


def test_a_device_is_found_by_name_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_device("npu-a").name == "npu-a"
    (tmp_path / "mine.toml").write_text(GOOD)
    assert find_device(str(tmp_path / "mine.toml")).name == "my-chip"
    for wanted, message, hint in (
        ("npu-b", "There is no device named 'npu-b'.", "npu-a"),
        ("x/none.toml", "There is no device file x/none.toml.", "Known devices"),
    ):
        with pytest.raises(ToolError) as caught:
            find_device(wanted)
        assert caught.value.message == message and hint in caught.value.hint
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolError) as caught:
        find_device("mine")
    assert caught.value.hint == "There is a file with that name here: mine.toml"


def test_lines_of_every_key_of_an_awkward_file() -> None:
    text = '''# a comment with [brackets] = and "quotes"
top = """
not = 1
[no.header]
"""
"quoted key" = 'it''s'
  a.b . c = 1 # dotted
[t]  # header
"x.y" = { p = [1, { q = 2 }],
  r = "#" }
list = [
  "one", # first
  [ 2,
    3 ],
]
[[many.times]]
k = 1
[many.times.inner]
z = 0
[[ many . "times" ]]
k = 2
'''.replace("'it''s'", "'its'")
    lines = key_lines(text)
    expected = {
        ("top",): 2,
        ("quoted key",): 6,
        ("a", "b", "c"): 7,
        ("t",): 8,
        ("t", "x.y"): 9,
        ("t", "x.y", "p", 1, "q"): 9,
        ("t", "x.y", "r"): 10,
        ("t", "list", 0): 12,
        ("t", "list", 1, 1): 14,
        ("many", "times", 0, "k"): 17,
        ("many", "times", 0, "inner", "z"): 19,
        ("many", "times", 1): 20,
        ("many", "times", 1, "k"): 21,
    }
    assert {path: lines.get(path) for path in expected} == expected
    assert ("not",) not in lines and ("no", "header") not in lines


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_key_of_a_shipped_file_has_a_line(path: Path) -> None:
    text = path.read_text()
    lines = key_lines(text)

    def walk(value: object, at: tuple[str | int, ...]) -> None:
        if at:
            assert at in lines, at
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, (*at, key))
        elif isinstance(value, list):
            for number, item in enumerate(value):
                walk(item, (*at, number))

    walk(tomllib.loads(text), ())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1024, 1024),
        ("16 GiB", 2**34),
        ("16G", 2**34),
        ("1.5 GB", 1_500_000_000),
        ("1e9", 10**9),
        (" 1_000 ", 1000),
        (2.0, 2),
    ],
)
def test_bytes(given: object, expected: int) -> None:
    assert parse_bytes(given) == expected


@pytest.mark.parametrize("given", ["", "GiB", "12 parsecs", "-1", 0, True, None, "1.2.3", 2**63])
def test_what_is_no_number_of_bytes(given: object) -> None:
    with pytest.raises(ValueError, match="number of bytes"):
        parse_bytes(given)


def test_bytes_for_people() -> None:
    shown = [shown_bytes(size) for size in (1, 1023, 2**10, 1536, 2**34)]
    assert shown == ["1 byte", "1023 bytes", "1 KiB", "1.5 KiB", "16 GiB"]


def test_comparisons() -> None:
    assert parse_comparison("groups > 1") == ("groups", ">", 1.0, False)
    assert parse_comparison("ceil_mode==true") == ("ceil_mode", "==", True, False)
    assert parse_comparison("mode != 'reflect'") == ("mode", "!=", "reflect", False)
    assert parse_comparison("len( stride ) > 2") == ("stride", ">", 2.0, True)
    with pytest.raises(ValueError, match="length of stride is no true"):
        parse_comparison("len(stride) == true")
    for text in ("groups", "groups = 1", "1 < groups < 3", "groups > 1 and x", "mode > reflect"):
        with pytest.raises(ValueError, match=r"comparison|order"):
            parse_comparison(text)


DOCS = page_text("devices")


def test_the_documented_file_has_every_key_and_is_right() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", DOCS, re.S)
    assert examine_device(text).problems == ()
    assert set(_keys(tomllib.loads(text))) == set(_fields(Device))


def _keys(table: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, value in table.items():
        items = [value] if isinstance(value, dict) else value
        tables = isinstance(items, list) and items and isinstance(items[0], dict)
        if tables and key != "per_op":
            for item in items:
                yield from _keys(item, f"{path}{key}.")
        else:
            yield f"{path}{key}"


def _fields(table: Any, path: str = "") -> Iterator[str]:
    for field in msgspec.structs.fields(table):
        kinds = [field.type, *get_args(field.type)]
        inner = [k for k in kinds if isinstance(k, type) and issubclass(k, msgspec.Struct)]
        if inner:
            yield from _fields(inner[0], f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}"


def test_the_documented_constraint_works() -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", DOCS, re.S)
    names: dict[str, Any] = {}
    exec(snippet, names)

    def breaches(kernel: int) -> list[Breach]:
        weight = TensorInfo((8, 8, kernel, kernel), "float32")
        call = Call("aten.convolution.default", (weight, weight), ())
        node = Node("c", "call_function", "torch.conv2d", calls=(call,), no_tensor=True)
        return check_graph(Graph((node,)), [names["SmallKernels"]()])

    assert breaches(7) == []
    assert [breach.found for breach in breaches(9)] == ["a kernel of [9, 9]"]
