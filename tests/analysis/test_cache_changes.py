"""Why the later of two runs compiled again: the part of the key that differs."""

from __future__ import annotations

from pathlib import Path

import pytest

import samples
from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.cache_changes import CacheComparison, CacheMiss, compare_caches
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import Body, CacheAccess, GraphCaptured, SourceSeen
from compilescope.record.cache_key import cache_access
from compilescope.record.graph import Graph, Node, encode_graph
from compilescope.record.run import Run, read_run
from compilescope.record.stack import CodeRef
from compilescope.report.comparison import ComparedRun, compare_runs
from compilescope.report.document import report_document
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from recorder.harness import captured_command, finish, start

KEYS = {n: chr(ord("a") + n) * 52 for n in range(9)}


def lines(**values: object) -> list[str]:
    """Torch's list of a key's parts."""
    default = {"gm": 1, "example_inputs[0]": 1, "fx_kwargs[is_backward]": False}
    given = {name.replace("__", "[") + "]" * ("__" in name): v for name, v in values.items()}
    return [
        f"[{f'{value}'.lower():x<20}] {name}: {value}"
        for name, value in ({**default, **given}).items()
    ]


def run(
    components: list[str] | None = None,
    key: int = 0,
    outcome: str = "miss",
    *,
    root: str = ROOT,
    source: str = "",
    function: str = "forward",
    text: str = "",
    **info: object,
) -> Run:
    artifacts = MemoryArtifacts()
    file = f"{root}/model.py"
    at = frame(9, file=file)
    nodes = (
        Node("a", "call_function", "torch.cos"),
        Node("b", "call_function", "op.odd", frame=at),
    )
    bodies: list[Body] = [
        SourceSeen(file, artifacts.put(source, "py")),
        GraphCaptured(
            "dynamo",
            frame=CodeRef(file, 6, function),
            graph=artifacts.put(encode_graph(Graph(nodes)), "json"),
            text=artifacts.put(text, "py"),
        ),
        cache_access(
            "fx_graph",
            outcome,
            {"key": KEYS[key], "components": components or lines(), **info},
            artifacts.put,
        ),
    ]
    events = [event(body, number=n, compile_id="0/0") for n, body in enumerate(bodies)]
    return samples.with_artifacts(run_of(*events, root=root), artifacts)


def compared(before: Run, after: Run) -> CacheComparison:
    seen = compare_caches(before, after)
    assert seen is not None
    return seen


def miss(before: Run, after: Run) -> CacheMiss:
    [found] = compared(before, after).missed
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gm", "graph"),
        ("example_inputs[0]", "inputs"),
        ("fx_kwargs[static_input_idxs]", "inputs"),
        ("fx_kwargs[cudagraphs]", "configuration"),
        ("inductor_config[max_autotune]", "configuration"),
        ("cuda_matmul_settings", "configuration"),
        ("torch_version", "torch"),
        ("system_info[device]", "device"),
        ("cpp_runtime_thread_count", "environment"),
        ("user_defined_triton_source[0]", "source"),
        ("something_new", "configuration"),
    ],
)
def test_each_part_is_named_by_what_it_is(name: str, kind: str) -> None:
    given = name.replace("[", "__").replace("]", "")
    found = miss(run(lines(**{given: 1})), run(lines(**{given: 2}), 1))
    assert found.why == "key"
    assert [(part.kind, part.name, part.before, part.after) for part in found.parts] == [
        (kind, name, "1", "2")
    ]


def test_a_part_that_only_one_key_has() -> None:
    [part] = miss(run(), run(lines(cudagraph_override=True), 1)).parts
    assert (part.name, part.before, part.after) == ("cudagraph_override", "absent", "True")


def test_the_source_is_named_where_another_graph_came_of_it() -> None:
    found = miss(run(source="a"), run(lines(gm=2), 1, source="b"))
    assert [(part.kind, part.name) for part in found.parts] == [
        ("source", "model.py"),
        ("graph", "gm"),
    ]
    found = miss(run(source="a"), run(lines(example_inputs__0=2), 1, source="b"))
    assert [part.kind for part in found.parts] == ["inputs"], "a comment was edited"


def test_the_same_key_was_found_no_more() -> None:
    assert miss(run(), run()).why == "absent"
    assert miss(run(), run(cache_status_detailed="guard_miss")).why == "guards"


def test_what_is_found_is_no_miss() -> None:
    seen = compared(run(), run(outcome="hit"))
    assert (seen.lookups, seen.hits, seen.missed) == ((1, 1), (0, 1), ())


def test_another_folder_holds_the_same_program() -> None:
    assert miss(run(), run(root="/elsewhere/copy")).why == "absent"


def test_a_function_that_the_earlier_run_did_not_compile() -> None:
    found = miss(run(), run(lines(gm=2), 1, function="other"))
    assert (found.why, found.before, found.function) == ("new", "", "other")


def test_a_bypass_is_placed_at_the_call_that_it_names() -> None:
    bypassed = run(outcome="bypass", cache_bypass_reason="Unsupported target odd.\n Module: op")
    found = miss(run(), bypassed)
    assert (found.why, found.line) == ("bypass", 9)
    [reason] = digest(bypassed).caches["fx_graph"].reasons
    assert (reason.line, reason.count) == (9, 1)
    assert reason.reason == "Unsupported target odd. Module: op"
    assert "model.py:9 in forward" in to_text(report_document(Reading(bypassed, full=True)))
    elsewhere = run(outcome="bypass", cache_bypass_reason="Failed to pickle cache key")
    assert miss(run(), elsewhere).line == 6, "the function, where no call is named"


def test_keys_without_parts_are_told_by_dynamos_graph_or_not_at_all() -> None:
    """As AOTAutograd's are, where Inductor's are the same."""

    def without(key: int, text: str) -> Run:
        made = run(["nothing"], key, text=text)
        assert all(body.parts is None for _, body in made.of(CacheAccess))
        return made

    other = miss(without(0, "x + 1  # a"), without(1, "x + 2"))
    assert (other.why, [part.kind for part in other.parts]) == ("key", ["graph"])
    assert miss(without(0, "x\n  # File a.py:1"), without(1, "x\n  # File a.py:2")).why == "unknown"


def test_runs_that_asked_no_cache_say_nothing() -> None:
    assert compare_caches(run_of(), run_of()) is None
    assert "Caches" not in drawn(run_of(), run_of())


def drawn(before: Run, after: Run) -> str:
    return to_text(compare_runs(ComparedRun(before, "a"), ComparedRun(after, "b")).document)


def test_one_reason_is_told_once_with_its_settings() -> None:
    text = drawn(run(), run(lines(inductor_config__max_autotune=True), 1))
    assert "The key differs: configuration" in text
    assert "max_autotune absent -> True" in text and "model.py:6 in forward: Inductor" in text


PROGRAM = """
import sys
import torch
import torch._inductor.config as config

config.max_autotune = "autotune" in sys.argv

@torch.compile
def f(x):
    return (x.sin() + 1).sum(-1)

with torch.no_grad():
    f(torch.ones(4, 9 if "wider" in sys.argv else 8))
"""


@pytest.mark.torch
@pytest.mark.slow
def test_real_runs_with_one_cache(cxx: None, tmp_path: Path) -> None:
    """Cold, warm, another setting, another shape, another source, an emptied cache."""
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    home = tmp_path / "runs"

    def ran(*arguments: str, source: str = PROGRAM, cache: str = "cache") -> Run:
        program.write_text(source)
        command = captured_command(home, "-q", str(program), *arguments)
        env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / cache)}
        known = set(home.iterdir()) if home.exists() else set()
        assert finish(start(command, env=env)).status == 0
        [folder] = [each for each in home.iterdir() if each not in known and each.is_dir()]
        return read_run(folder)

    cold = ran()
    warm = compared(cold, ran())
    assert warm.hits[0] == 0 and warm.hits[1] == warm.lookups[1] > 0 and not warm.missed

    def parts(later: Run) -> set[tuple[str, str]]:
        missed = compared(cold, later).missed
        assert {each.why for each in missed} == {"key"}
        assert {each.cache for each in missed} == {"fx_graph", "aot_autograd"}
        assert all((each.function, each.graph) == ("f", 1) for each in missed)
        return {(part.kind, part.name) for each in missed for part in each.parts}

    assert parts(ran("autotune")) == {("configuration", "inductor_config[max_autotune]")}
    wider = ran("wider")
    assert parts(wider) == {("inputs", "example_inputs[0]")}
    assert "float32[4, 8][8, 1]cpu -> float32[4, 9][9, 1]cpu" in drawn(cold, wider)
    edited = ran(source=PROGRAM.replace("+ 1", "+ 2"))
    assert parts(edited) == {("source", "program.py"), ("graph", "gm")}
    emptied = compared(cold, ran(cache="another"))
    assert {each.why for each in emptied.missed} == {"absent"}
