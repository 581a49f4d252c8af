"""Tables out of wheels, checkouts and files, and what a torch's source raises."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry import torch_copy
from compilescope.knowledge.registry.table import load_registry
from compilescope.knowledge.registry.torch_copy import (
    dynamo_sources,
    raised_types,
    read_table,
    same_type,
    torch_of,
)

TABLE = json.dumps({"GB0001": [{"Gb_type": "One"}], "GB0002": [{"Gb_type": "Two {x}"}]})
SOURCE = """
def f(gb_type, name):
    unimplemented(gb_type="One", context="")
    unimplemented(gb_type=f"Two {name}", context="")
    unimplemented(gb_type="Three" if name else "Four", context="")
    unimplemented(gb_type=gb_type, context="")
"""


def wheel(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("-", "."), text)
    return path


def whole_wheel(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("torch/_dynamo/graph_break_registry.json", TABLE)
        archive.writestr("torch/version.py", "__version__ = '9.1.0+cu130'\n")
        archive.writestr("torch/_dynamo/variables/x.py", SOURCE)
        archive.writestr("torch/other.py", "unimplemented(gb_type='Not of Dynamo')")
    return path


def test_a_wheel(tmp_path: Path) -> None:
    path = whole_wheel(tmp_path / "torch-9.1.0-cp311-none-any.whl")
    found = read_table(path)
    assert found.torch == "9.1.0+cu130" and len(found) == 2
    assert [name for name, _ in dynamo_sources(path)] == ["_dynamo/variables/x.py"]
    assert torch_of(found) is None
    assert list(tmp_path.iterdir()) == [path]  # Nothing was unpacked.


@pytest.mark.parametrize("below", ["torch", "src/torch", ""])
def test_a_checkout_or_an_installation(tmp_path: Path, below: str) -> None:
    folder = tmp_path / below
    (folder / "_dynamo").mkdir(parents=True)
    (folder / "_dynamo" / "graph_break_registry.json").write_text(TABLE)
    (folder / "_dynamo" / "x.py").write_text(SOURCE)
    (folder.parent / "version.txt").write_text("9.2.0a0\n")
    found = read_table(tmp_path)
    assert found.torch == "9.2.0a0"
    assert torch_of(found) == folder
    assert [name for name, _ in dynamo_sources(tmp_path)] == ["_dynamo/x.py"]
    (folder / "version.py").write_text("__version__ = '9.2.0+cpu'\n")
    assert read_table(tmp_path).torch == "9.2.0+cpu"


def test_a_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(TABLE)
    assert read_table(path).torch is None and torch_of(read_table(path)) is None
    assert list(dynamo_sources(path)) == []


def test_what_holds_no_table_is_one_sentence(tmp_path: Path) -> None:
    other = wheel(tmp_path / "other.whl", **{"numpy/__init__": ""})
    cut = tmp_path / "cut.whl"
    cut.write_bytes(whole_wheel(tmp_path / "whole.whl").read_bytes()[:200])
    for source, says in (
        (other, "contains no graph-break table"),
        (cut, "not a complete wheel"),
        (tmp_path, "contains no torch"),
        (tmp_path / "absent.whl", "no file"),
        (tmp_path / "absent", "no file"),
    ):
        with pytest.raises(ToolError, match=says) as caught:
            read_table(source)
        assert "\n" not in caught.value.message


def test_a_member_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_copy, "BIGGEST_BYTES", 1 << 20)
    path = tmp_path / "bomb.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("torch/_dynamo/graph_break_registry.json", b" " * (8 << 20))
    with pytest.raises(ToolError, match="larger than"):
        read_table(path)


def test_types_in_source() -> None:
    raised = raised_types([("a.py", SOURCE), ("b.py", "x = (gb_type"), ("c.py", "no calls")])
    types = [call.gb_type for call in raised.calls]
    assert types == ["One", "Two {name}", "Three", "Four"]
    assert [call.gb_type for call in raised.untold] == ["gb_type"]
    assert raised.unread == ("b.py",)
    assert raised.raises("One") and raised.raises("Two {x}") and not raised.raises("Five")
    assert [call.line for call in raised.places("Two {x}")] == [4]
    assert same_type("a {b} c", "a whole lot c") and not same_type("a b", "a c")


def test_the_installed_torch() -> None:
    """What is raised there is found: nearly every call has its id in the table."""
    table = load_registry()
    folder = torch_of(table)
    assert folder is not None
    raised = raised_types(dynamo_sources(folder))
    assert len(raised.calls) > 300 and raised.unread == ()
    item = raised.places("Unsupported Tensor.item() call with capture_scalar_outputs=False")
    assert [call.file for call in item] == ["_dynamo/variables/tensor.py"]
