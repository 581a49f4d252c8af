"""The table of capabilities agrees with this torch, the record, the fixes and the docs."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import compilescope
from capabilities import PYTHON, expected
from compilescope.instrument.torchapi.capabilities import capabilities, detected, has
from compilescope.instrument.torchapi.install import all_hooks
from compilescope.knowledge.registry.capabilities import (
    CAPABILITIES,
    SeenCapabilities,
    capabilities_text,
    load_capabilities,
)

pytestmark = pytest.mark.torch
HOUSE = Path(compilescope.__file__).parent
ROOT = HOUSE.parent.parent
_NAME = re.compile(r"\btorch(?:\.\w+)+")
_COMPILER = re.compile(r"torch\.(compiler|_dynamo|_higher_order_ops|_library|library|cond)\b")


def test_this_torch_has_what_is_on_record() -> None:
    found = detected()
    recorded = load_capabilities().of(version("torch"), PYTHON)
    if recorded is not None:
        assert {name for name in recorded if not name.startswith("example/")} == found
    assert all(expected(name) for name in found)


def test_every_row_says_what_it_is_for() -> None:
    rows = capabilities()
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.use and not row.use.endswith(".") for row in rows)
    assert {"hook", "argument", "flag", "guard", "break", "tracing"} <= {row.kind for row in rows}
    assert set(load_capabilities().seen) >= {row.id for row in rows}


def test_what_is_not_in_the_table_is_no_answer() -> None:
    with pytest.raises(KeyError):
        has("flag/no_such_flag")


def test_the_hooks_that_are_missing_are_reported_as_such() -> None:
    """An asserted "unavailable": a capture names each hook that this torch has no place for,
    unless another stands in for it."""
    import torch

    torch._dynamo.reset()
    with compilescope.capture(time=True, ir=True) as seen:
        torch.compile(torch.sin, backend="inductor")(torch.ones(2))
    stood_in_for = {(hook.module, hook.unless) for hook in all_hooks() if hook.unless}
    missing = {
        hook.id
        for hook in all_hooks()
        if hook.module.startswith("torch.")
        and not has(f"hook/{hook.id}")
        and (hook.module, hook.target) not in stood_in_for
    }
    assert {hook.hook for hook in seen.digest.unavailable} == missing


def test_what_fixes_write_is_in_the_table() -> None:
    known = {row.id.partition("/")[2] for row in capabilities() if row.kind in _WRITTEN}
    for good in HOUSE.glob("change/fixes/*/examples/*/good.py"):
        text, before = good.read_text(), good.with_name("bad.py").read_text()
        names = {name for name in _NAME.findall(text) if _COMPILER.match(name)}
        names -= set(_NAME.findall(before))
        flags = set(re.findall(r"config\.patch\((\w+)=", text))
        flags |= {name.rpartition(".")[2] for name in names if "_dynamo.config." in name}
        names = {name for name in names if "_dynamo.config." not in name}
        assert names | flags - {"patch"} <= known, good


_WRITTEN = ("flag", "function", "argument")


def test_the_record_is_as_the_tool_writes_it() -> None:
    record = load_capabilities()
    assert CAPABILITIES.read_text(encoding="utf-8") == capabilities_text(record)
    for found in record.seen.values():
        assert set(found) <= set(record.versions)


def test_a_version_is_added_in_its_place() -> None:
    record = SeenCapabilities().with_torch("2.13.0", ["a"], ["a", "b"])
    record = record.with_torch("2.9.1", ["b"], ["a", "b"])
    assert record.versions == ("2.9.1", "2.13.0")
    assert record.seen == {"a": ("2.13.0",), "b": ("2.9.1",)}
    assert record.of("2.13.0+cpu", "3.11") == {"a"} and record.of("2.10.0", "3.11") is None
    assert record.with_torch("2.13.0", [], ["a", "b"]).of("2.13.0", "3.11") == frozenset()


def test_another_python_is_a_difference() -> None:
    record = SeenCapabilities().with_torch("2.13.0", ["a", "b"], ["a", "b", "c"])
    record = record.with_python("2.13.0", "3.12", ["b", "c", "unknown"])
    assert record.of("2.13.0", "3.12") == {"b", "c"}
    assert record.of("2.13.0", "3.11") == record.of("2.13.0", "3.13") == {"a", "b"}
    assert msgspec.json.decode(capabilities_text(record), type=SeenCapabilities) == record
    assert record.with_python("2.13.0", "3.12", ["a", "b"]).of("2.13.0", "3.12") == {"a", "b"}


def test_the_page_is_current() -> None:
    """`python benchmarks/versions.py page` writes it."""
    assert (ROOT / "docs" / "reference" / "versions.md").read_text(
        encoding="utf-8"
    ) == _script().page()


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("versions", ROOT / "benchmarks" / "versions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
