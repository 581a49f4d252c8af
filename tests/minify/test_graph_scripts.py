"""Graphs as scripts: what was captured runs again with the same results, and says what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from compilescope.change.minify.graph.candidate import readable  # noqa: E402
from compilescope.change.minify.graph.record import BackendSource, Setting, Shown  # noqa: E402
from compilescope.change.minify.script.embedded.differences import difference  # noqa: E402
from compilescope.change.minify.script.embedded.failures import fingerprint  # noqa: E402
from compilescope.change.minify.script.embedded.tensors import read_tensors, tensor  # noqa: E402
from compilescope.change.minify.script.graph_script import graph_classes, script_text  # noqa: E402
from compilescope.instrument.torchapi.repros.graph_writer import (  # noqa: E402
    GraphAndInputs,
    watched_backends,
    write_graph,
)
from compilescope.record.written_graph import Code, Input, Op, Ref, WrittenGraph  # noqa: E402

EAGER = Setting(BackendSource("'eager'", "eager"))
SHOWN = Shown("difference", "values", "Nothing.")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def captured(function: Any, *args: Any, dynamic: bool = False) -> list[GraphAndInputs]:
    found = []

    def watch(handed: Any) -> Any:
        found.append(write_graph(handed.module, handed.inputs))
        return handed.module.forward

    with watched_backends(watch):
        torch.compile(function, backend="eager", dynamic=dynamic)(*args)
    return found


def names_of(
    written: GraphAndInputs, setting: Setting = EAGER, shown: Shown = SHOWN
) -> dict[str, Any]:
    text = script_text(readable(written.graph), setting, shown, torch_version="2.0")
    names: dict[str, Any] = {"__name__": "__repro__", "__file__": "x.py", "saved": written.values}
    exec(compile(text, "x.py", "exec"), names)
    return names


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(6, 6)
        self.register_buffer("scale", torch.full((6,), 0.5))
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: Any, mask: Any = None) -> Any:
        y = self.norm(self.mix(x)) * self.scale
        left, right = y.chunk(2, -1)
        if mask is not None:
            left = left.masked_fill(mask, -float("inf"))
        return {"a": (left.softmax(-1), right[..., 1:]), "b": torch.stack([left, right]).amax(0)}


def indexing(x: Any, at: Any) -> Any:
    y = x[:, None, ::2]
    y = torch.cat([y, y.flip(0)], dim=1)
    y[:, 0] += 1
    return y[at, ..., -1], x.T.contiguous().view(-1)[2:5], x.to(torch.float16).float()


def casting(x: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ x.T
        with torch.autocast("cpu", enabled=False):
            z = y.float() @ x
    return y + 1, z


CASES = {
    "module": (Gated(), (torch.randn(4, 6), torch.tensor([[True, False, False]] * 4))),
    "indexing": (indexing, (torch.randn(4, 6), torch.tensor([2, 0]))),
    "attention": (nn.MultiheadAttention(8, 2, batch_first=True), (torch.randn(2, 3, 8),) * 3),
    "convolution": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), (torch.randn(2, 3, 6, 6),)),
    "recurrent by hand": (nn.GRUCell(5, 7), (torch.randn(2, 5), torch.randn(2, 7))),
    "strides": (lambda x: (x + 1).sum(0), (torch.randn(6, 4).T[:, ::2],)),
    "expanded": (lambda x: x * 2, (torch.randn(1, 4).expand(3, 4),)),
    "autocast": (casting, (torch.randn(4, 6),)),
    "empty": (lambda x: x.sum(-1), (torch.randn(0, 4),)),
    "scalar": (lambda x: x * 2.5 + float("inf"), (torch.tensor(3.0),)),
    "complex": (lambda x: x * 1j, (torch.randn(3, dtype=torch.complex64),)),
}


DYNAMIC = ("indexing", "strides", "expanded", "scalar")
"""With dynamic shapes too; the others are slow."""


@pytest.mark.parametrize(
    ("name", "dynamic"),
    [
        pytest.param(
            name,
            dynamic,
            id=f"{name}-{'dynamic' if dynamic else 'static'}",
            marks=[pytest.mark.slow] if dynamic and name not in DYNAMIC else [],
        )
        for name in CASES
        for dynamic in (False, True)
    ],
)
def test_a_captured_graph_gives_the_same_results_again(name: str, dynamic: bool) -> None:
    function, args = CASES[name]
    function = function.eval() if isinstance(function, nn.Module) else function
    wanted = function(*args)
    flat = torch.utils._pytree.tree_leaves(wanted)
    (written,) = captured(function, *args, dynamic=dynamic)
    names = names_of(written)
    found = names["eager"]()
    tensors = [each for each in flat if each is not None]
    known = [each for each in found if isinstance(each, torch.Tensor)]
    for each in tensors:
        same = [k for k in known if k.shape == each.shape and torch.equal(k, each.detach())]
        assert same, name
    assert names["main"]()[0] is False


ENTER, EXIT = (f"torch.amp.autocast_mode._{each}_autocast" for each in ("enter", "exit"))


def region(name: str) -> tuple[Op, Op]:
    begin = Op(name, "function", ENTER, ("cpu", Code("torch.bfloat16"), True, None))
    return begin, Op(f"{name}_exit", "function", EXIT, (Ref(name),))


def body_of(*ops: Op) -> list[str]:
    graph = WrittenGraph((Input("x"),), ops, Ref("x"))
    (text,) = graph_classes(graph)
    return [line[8:] for line in text.split("forward(self, x):\n")[1].splitlines()]


def test_autocast_is_a_with_statement_where_one_says_the_same() -> None:
    (enter, leave), (enter_2, leave_2) = region("a"), region("b")
    add = Op("y", "function", "operator.add", (Ref("x"), 1))
    begin = "with torch.autocast('cpu', torch.bfloat16):"
    assert body_of(enter, add, leave, add) == [begin, "    y = x + 1", "y = x + 1", "return x"]
    assert body_of(enter, enter_2, leave_2, leave) == [
        begin,
        f"    {begin}",
        "        pass",
        "return x",
    ]
    crossed = body_of(enter, enter_2, leave, leave_2)
    assert [crossed[0], crossed[2]] == [begin, f"b_exit = {EXIT}(b)"]
    assert crossed[1].startswith(f"    b = {ENTER}(")
    for alone in (enter, leave):  # A smaller graph may have lost the other.
        assert body_of(alone)[0].startswith(f"{alone.name} = {alone.target}(")


def test_inputs_keep_their_layout(tmp_path: Path) -> None:
    given = torch.randn(6, 4).T[:, ::2]
    (written,) = captured(lambda x: x + 1, given)
    (made,) = names_of(written)["inputs"]()
    assert made.stride() == given.stride()
    assert torch.equal(made, given)


def test_numbers_by_seed_are_the_same_each_time() -> None:
    first, again = (tensor((3, 4), torch.float32, seed=5) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, tensor((3, 4), torch.float32, seed=6))
    whole = tensor((100,), torch.int64, low=-2, high=3)
    assert (int(whole.min()), int(whole.max())) == (-2, 3)
    assert tensor((2,), torch.bool, fill=1).all()
    assert tensor((2, 3), torch.float32, saved=[[1.0, 2, 9], [3, 4, 9]]).tolist()[1] == [3, 4, 9]


def test_saved_files_are_read_without_their_package(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    kept = {
        "a": torch.randn(2, 3, dtype=torch.bfloat16),
        "b": torch.tensor([True, False]),
        "c": torch.arange(5, dtype=torch.int8),
        "d": torch.tensor(2.5, dtype=torch.float64),
        "e": torch.empty(0, 3),
    }
    save_file(kept, tmp_path / "x.safetensors")
    found = read_tensors(tmp_path / "x.safetensors")
    assert found.keys() == kept.keys()
    for name, value in kept.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value)


def _raised(words: str, inner: BaseException | None = None) -> BaseException:
    try:
        raise ValueError(words) from inner
    except ValueError as error:
        return error


def test_a_fingerprint_forgets_numbers_and_names() -> None:
    first = fingerprint(_raised("no kernel for add_3 of [4, 8] at 0x7f12ab"))
    assert first == fingerprint(_raised("no kernel for add of [2] at 0x55"))
    assert first != fingerprint(_raised("no kernel for mul_3 of [4, 8] at 0x7f12ab"))
    assert first[0] == "ValueError"
    assert first[2] == "_raised"
    deep = fingerprint(_raised("outer", inner=_raised("inner")))
    assert deep[1] == "inner"


def test_differences_are_told_by_kind() -> None:
    x = torch.randn(4, 8)
    exact = x.double()
    assert difference(x, x.clone(), exact) is None
    assert difference(x, x * (1 + 1e-7), exact) is None
    assert difference(x, x + 0.01, exact)[0] == "values"
    assert difference(x, x[:2], exact)[0] == "structure"
    assert difference(x, x.half(), exact)[0] == "structure"
    broken = x.clone()
    broken[0, 0] = float("nan")
    assert difference(x, broken, exact)[0] == "nan"
    # Where eager is no number either, there is nothing to hold against it.
    assert difference(broken, x, exact) is None
    assert difference(torch.tensor([1, 2]), torch.tensor([1, 3]), None)[0] == "whole"
    # A small row beside a large one.
    rows = torch.stack([x[0] * 1e6, x[0]])
    wrong = rows.clone()
    wrong[1] += 0.01
    assert difference(rows, wrong, rows.double())[0] == "values"
    assert difference(torch.empty(0), torch.empty(0), None) is None


def test_a_graph_in_half_precision_is_judged_in_double() -> None:
    def halves(x: Any) -> Any:
        return (x.half() @ x.half().T).float().softmax(-1, dtype=torch.float32)

    (written,) = captured(halves, torch.randn(4, 8))
    names = names_of(written)
    (exact,) = names["exact"]()
    x = written.values[next(iter(written.values))].double()
    assert torch.allclose(exact, (x @ x.T).softmax(-1))


def test_words_of_a_program_stay_in_their_comment() -> None:
    import msgspec

    (written,) = captured(lambda x: x + 1, torch.ones(2))
    (op,) = written.graph.ops
    hostile = 'x.py:1: "\n\nimport os\nraise SystemExit(9)\n"""'
    graph = msgspec.structs.replace(written.graph, ops=(msgspec.structs.replace(op, note=hostile),))
    shown = Shown("difference", "values", 'A """title""" \\', ('"""', "\\"))
    written = msgspec.structs.replace(written, graph=graph)
    assert names_of(written, shown=shown)["main"]()[0] is False
