"""One repro for each kind of violation: small, its own, and named in the run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import compilescope  # noqa: E402
from compilescope import (  # noqa: E402
    ConstraintError,
    DtypeConstraint,
    ShapeConstraint,
    UnsupportedOpsConstraint,
)
from compilescope.backends.mock.backend import (  # noqa: E402
    CheckedModule,
    MadeRepros,
    MockBackend,
    ReproPart,
)
from compilescope.backends.mock.configuration import configure  # noqa: E402
from compilescope.change.minify.graph.candidate import op_count  # noqa: E402
from compilescope.change.minify.graph.record import write_record  # noqa: E402
from compilescope.change.minify.violations.kinds import facts, setting_of  # noqa: E402
from compilescope.change.minify.violations.repros import _kinds, _Making, verified_repro  # noqa: E402
from compilescope.change.minify.violations.worker import reduced  # noqa: E402
from compilescope.instrument.torchapi.repros.graph_writer import write_graph  # noqa: E402
from compilescope.knowledge.findings.failures import failures  # noqa: E402
from compilescope.knowledge.findings.violations import violations  # noqa: E402
from compilescope.report.render.terminal import to_text  # noqa: E402
from compilescope.report.section import Reading  # noqa: E402
from compilescope.report.sections.violations import violations_document  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def judged_graph(function: Any, *args: Any, **settings: Any) -> CheckedModule:
    """What strict mode hands over."""
    seen: list[CheckedModule] = []

    def reproduce(judged: CheckedModule) -> MadeRepros:
        # Now, as a repro is made: when the compilation ends, torch may clear the graph.
        seen.append(replace(judged, module=copy.deepcopy(judged.module)))
        return MadeRepros("")

    torch._dynamo.reset()
    with pytest.raises(ConstraintError):
        torch.compile(function, backend=MockBackend(configure(**settings), reproduce))(*args)
    return seen[0]


def wanted_of(judged: CheckedModule) -> list[Any]:
    written = write_graph(judged.module)
    found = [each for graph in judged.checked for each in graph.errors]
    return _kinds(found, setting_of(judged, written), Path("repros"))


def test_each_kind_comes_down_to_the_call_that_shows_it(tmp_path: Path) -> None:
    model = nn.Sequential(*[Block(8) for _ in range(3)])
    rules = [UnsupportedOpsConstraint(["aten.gelu", "aten.native_layer_norm"])]
    judged = judged_graph(model, torch.randn(2, 8), constraints=rules)
    written = write_graph(judged.module)
    assert op_count(written.graph) == 15
    wanted = wanted_of(judged)
    found = [each for graph in judged.checked for each in graph.errors]
    making = _Making(judged, written.graph, setting_of(judged, written), facts(found))
    assert [each.fact.op for each in wanted] == [
        "aten.native_layer_norm.default",
        "aten.gelu.default",
    ]
    for number, each in enumerate(wanted):
        home = tmp_path / str(number)
        write_record(home, making._record(each), {})
        graph = reduced(home, 280.0)
        assert graph is not None
        assert op_count(graph) == 1
        assert not [given for given in graph.inputs if given.fill == "saved"]


def test_other_rules_places_and_models_are_other_violations() -> None:
    def one(x: Any) -> Any:
        return x.sin()

    def two(x: Any) -> Any:
        return x.sin()

    keys = [
        wanted_of(judged_graph(function, torch.randn(3, 5), constraints=[rule]))[0].key
        for function, rule in (
            (one, ShapeConstraint(8)),
            (one, ShapeConstraint(16)),
            (two, ShapeConstraint(8)),
            (one, DtypeConstraint(["float16"])),
            (one, ShapeConstraint(8)),
        )
    ]
    assert len(set(keys[:4])) == 4
    assert keys[4] == keys[0]


def test_a_run_names_the_script_of_each_violation(tmp_path: Path) -> None:
    def reproduce(judged: CheckedModule) -> MadeRepros:
        (checked,) = judged.checked
        first, *rest = checked.errors
        made = ReproPart((first,), str(tmp_path / "first.py"), ops=1, ops_before=3)
        return MadeRepros("", made.path, (made, ReproPart(tuple(rest), reason="no time was left")))

    def wave(x: Any) -> Any:
        return x.sin().cos().double()

    constraints = [DtypeConstraint(["float32"]), UnsupportedOpsConstraint(["aten.sin"])]
    backend = MockBackend(configure(constraints=constraints), reproduce)
    with compilescope.capture() as live, pytest.raises(ConstraintError):
        torch.compile(wave, backend=backend)(torch.randn(3))
    found = violations(live.run)
    assert [each.repro for each in found] == [str(tmp_path / "first.py"), ""]
    assert found[1].no_repro == "no time was left"
    text = to_text(violations_document("run", Reading(live.run)))
    assert "first.py" in "".join(text.split())
    assert "(1 operation)" in " ".join(text.split())
    assert "No repro: no time was left" in text
    (failure,) = failures(live.run)
    assert failure.repro == str(tmp_path / "first.py")


@pytest.mark.slow
def test_a_second_violation_in_one_process_has_its_own_script(tmp_path: Path) -> None:
    def one(x: Any) -> Any:
        return x.sin() + 1

    paths = []
    for multiple in (8, 16, 8):
        configured = configure(
            constraints=[ShapeConstraint(multiple)], repro=tmp_path, repro_timeout_s=600
        )
        torch._dynamo.reset()
        with pytest.raises(ConstraintError) as error:
            torch.compile(one, backend=MockBackend(configured, verified_repro))(torch.randn(3, 5))
        assert error.value.repro_paths, str(error.value)
        paths.append(error.value.repro_paths)
    assert paths[0] == paths[2]
    assert not set(paths[0]) & set(paths[1])
    for path in (*paths[0], *paths[1]):
        assert Path(path).read_text().count("# test_violation_kinds.py:") <= 1
    # Nothing else lies there: drafts are gone.
    assert {str(each) for each in tmp_path.iterdir()} == {*paths[0], *paths[1]}
