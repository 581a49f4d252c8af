"""PyTorch's table of graph breaks: reading, lookups, search, and files that are none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.table import (
    Registry,
    clean_context,
    clean_explanation,
    join_hints,
    load_registry,
    normal_id,
)


@pytest.fixture(scope="module")
def table() -> Registry:
    return load_registry()


def write(folder: Path, content: Any) -> Path:
    path = folder / "table.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def variant(gb_type: str, **fields: Any) -> dict[str, Any]:
    return {"Gb_type": gb_type, "Context": "", "Explanation": "", "Hints": [], **fields}


def test_the_installed_table_is_read_whole(table: Registry) -> None:
    raw = json.loads(Path(table.path).read_text())
    assert [entry.gb_id for entry in table] == sorted(raw)
    assert sum(len(entry.variants) for entry in table) == sum(map(len, raw.values()))
    assert len(table) > 400
    assert table.torch and table.torch[0].isdigit()


@pytest.mark.parametrize("written", ["GB0124", "gb0124", "gb124", "124", "0124", " GB0124 "])
def test_an_id_is_found_however_it_is_written(table: Registry, written: str) -> None:
    entry = table.get(written)
    assert entry is not None and "Tensor.item()" in entry.title


@pytest.mark.parametrize("written", ["", "GB", "item", "GB12a4", "-5", "1e3", "GB1234567", "١٢"])
def test_what_is_no_id_finds_nothing(table: Registry, written: str) -> None:
    assert table.get(written) is None


def test_ids_keep_four_digits() -> None:
    assert normal_id("7") == "GB0007" and normal_id("gb9999") == "GB9999"
    assert normal_id("GB12345") == "GB12345"


def test_a_type_may_belong_to_two_ids(table: Registry) -> None:
    found = table.by_type("bad device argument to torch.get_device_module")
    assert len(found) >= 2
    assert [entry.gb_id for entry in table.by_type("Data-dependent branching")] == ["GB0170"]
    assert table.by_type("no such type") == ()


def test_a_type_with_a_run_time_part_is_found(tmp_path: Path) -> None:
    path = write(tmp_path, {"GB0001": [variant("bad {kind} of call (x)")]})
    found = load_registry(path).by_type("bad new kind of call (x) ")
    assert [entry.gb_id for entry in found] == ["GB0001"]


def test_titles_leave_out_names_of_variables(table: Registry) -> None:
    for entry in table:
        assert entry.titles, entry.gb_id
        assert not any(title in ("_gb_type", "gb_type") for title in entry.titles)
    branch = table.get("GB0170")
    assert branch is not None and branch.titles == ("Data-dependent branching",)
    assert branch.explanations and branch.hints


def test_no_python_is_left_in_the_texts(table: Registry) -> None:
    for entry in table:
        for text in entry.explanations:
            assert text.strip() and '" +' not in text and "  " not in text, entry.gb_id
            assert text not in ("explanation", "_explanation", "msg", "str(e)"), entry.gb_id
        for text in (*entry.explanations, *entry.contexts):
            assert "{" not in text, f"{entry.gb_id}: {text}"
    skipped = table.get("GB0007")
    assert skipped is not None and skipped.explanations == ()


def test_hints_are_whole_sentences(table: Registry) -> None:
    item = table.get("GB0124")
    assert item is not None
    [hint] = item.hints
    assert hint.startswith("Set `torch._dynamo.config.capture_scalar_outputs = True` or `export")
    assert hint.endswith("to include these operations in the captured graph.")
    for entry in table:
        for hint in entry.hints:
            # One hint of the table begins with a small letter, and with its first piece.
            assert not hint[0].islower() or hint.startswith("make sure"), (entry.gb_id, hint)
            assert not hint.endswith((" and", " or", " to", " the", ",")), (entry.gb_id, hint)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("explanation", ""),
        ("msg +   + err_epilogue", ""),
        ("str(e)", ""),
        ("", ""),
        ('"One {a}, "    + f"two {self.b}." + tail', "One <a>, two <b>."),
        ('tail + " Unexpected."', "Unexpected."),
        ("tensor.is_inference() is not supported", "tensor.is_inference() is not supported"),
        ("Bad {type(x).__name__} and {self}", "Bad <type of x> and <value>"),
        ("Got {','.join(set(k) - {'a'})}!", "Got <...>!"),
        ("An open { brace", "An open { brace"),
        ("((((", "(((("),
    ],
)
def test_explanations(raw: str, clean: str) -> None:
    assert clean_explanation(raw) == clean


def test_contexts() -> None:
    assert clean_context("str(fake_tensor)") == "<fake_tensor>"
    assert clean_context("call_method {self} item {args}") == "call_method <value> item <args>"
    assert clean_context("") == ""


@pytest.mark.parametrize(
    ("pieces", "hints"),
    [
        (["Do this ", "and that.", "Or rest."], ("Do this and that.", "Or rest.")),
        (["No stop", "Another"], ("No stop", "Another")),
        (["See x", " for how"], ("See x for how",)),
        (["Use one of:\n", "* `a`\n", "* `b`"], ("Use one of: `a`, `b`",)),
        (["First. ", "Still first.", "Second."], ("First. Still first.", "Second.")),
        (["Your code may result in an error. ", "Other."], 2),
        (["Same.", "Same."], ("Same.",)),
        (["", "  "], ()),
        (["Drop `x` in `lambda: f'{x} bad'`"], ("Drop `x` in `lambda: f'{x} bad'`",)),
    ],
)
def test_joining_hints(pieces: list[str], hints: tuple[str, ...] | int) -> None:
    joined = join_hints(pieces)
    assert len(joined) == hints if isinstance(hints, int) else joined == hints


def test_search_ranks_types_before_texts(table: Registry) -> None:
    assert table.search(["item"])[0].gb_id == "GB0124"
    assert table.search(["gb170"])[0].gb_id == "GB0170"
    assert table.search(["data-dependent", "BRANCHING"])[0].gb_id == "GB0170"
    assert table.search(["data-dependent branching"]) == table.search(
        ["data-dependent", "branching"]
    )
    first = table.search(["context", "manager"])[0]
    assert "context manager" in first.title.casefold()


def test_search_wants_every_word(table: Registry) -> None:
    assert table.search(["item", "nosuchword"]) == []
    assert table.search([]) == [] and table.search(["  "]) == []
    both = {entry.gb_id for entry in table.search(["numpy", "trace_numpy"])}
    assert both and both <= {entry.gb_id for entry in table.search(["numpy"])}


def test_search_uses_the_labels(table: Registry) -> None:
    found = table.search(["zebra"], {"GB0007": "a zebra crossing"})
    assert [entry.gb_id for entry in found] == ["GB0007"]


def test_a_file_stands_for_another_torch(tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    (folder / "_dynamo").mkdir(parents=True)
    content = {"GB0002": [variant("Two")], "GB0001": [variant("One"), variant("Uno")]}
    path = write(folder / "_dynamo", content)
    assert load_registry(path).torch is None
    (folder / "version.py").write_text("from typing import X\n__version__ = '9.8.7+cpu'\n")
    table = load_registry(path)
    assert table.torch == "9.8.7+cpu"
    assert [entry.gb_id for entry in table] == ["GB0001", "GB0002"]
    assert table.entries[0].titles == ("One", "Uno")


def test_fields_may_be_missing_or_new(tmp_path: Path) -> None:
    path = write(tmp_path, {"GB0001": [{"Gb_type": "One", "Severity": 3}]})
    [entry] = load_registry(path)
    assert entry.title == "One" and entry.hints == ()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ('{"GB0001": [{"Gb_type": "One"', "not valid JSON"),
        ("certainly not JSON", "not valid JSON"),
        ('{"GB0001": [{"x": ' + "[" * 100_000, "not valid JSON"),
        ("[]", "not a graph-break table"),
        ("null", "not a graph-break table"),
        ('{"GB0001": {}}', "not a graph-break table"),
        ('{"GB0001": []}', "not a graph-break table"),
        ('{"GB0001": [{"Context": "x"}]}', "not a graph-break table"),
        ('{"GB0001": [{"Gb_type": 7}]}', "not a graph-break table"),
        ('{"GB0001": [{"Gb_type": "x", "Hints": "y"}]}', "not a graph-break table"),
        ('{"name": [{"Gb_type": "x"}]}', "not a graph-break table"),
        ('{"17": [{"Gb_type": "x"}]}', "not a graph-break table"),
        ('{"GB1": [{"Gb_type": "x"}], "GB0001": [{"Gb_type": "y"}]}', "twice"),
        ("{}", "without entries"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(ToolError, match=says) as caught:
        load_registry(write(tmp_path, content))
    assert "\n" not in caught.value.message and caught.value.message.endswith(".")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no file"):
        load_registry(tmp_path / "absent.json")
    with pytest.raises(ToolError, match="folder"):
        load_registry(tmp_path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00\x01" * 50)
    with pytest.raises(ToolError, match="not valid JSON"):
        load_registry(binary)
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ToolError, match="larger than"):
        load_registry(huge)


def test_the_table_is_found_without_importing_torch(tmp_path: Path) -> None:
    """Not imported where it could be, found where it must not be, absent where it is absent."""
    load = "from compilescope.knowledge.registry.table import load_registry\n"
    load += "print(len(load_registry()))\n"
    plain = "import sys\n" + load + "assert 'torch' not in sys.modules\n"
    blocked = (
        "import sys\nclass Block:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch':\n            raise ImportError('blocked')\n"
        "sys.meta_path.insert(0, Block())\n" + load
    )
    for code in (plain, blocked, "import sys\nsys.modules['torch'] = None\n" + load):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0 and int(done.stdout) > 400, done.stderr


def test_no_torch_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ToolError, match="has no torch") as caught:
        load_registry()
    assert "--file" in caught.value.hint
