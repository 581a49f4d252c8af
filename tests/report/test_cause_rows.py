"""The list of causes: each in one line, no two of which read alike."""

from __future__ import annotations

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.json_form import digest_json
from compilescope.record.bodies import Body, CacheEntryMiss, FailedGuard, GraphBreak, Recompile
from compilescope.record.stack import CodeRef, Frame
from compilescope.report.blocks import plain
from compilescope.report.cause_list import causes_table
from compilescope.report.document import report_document
from compilescope.report.explanation import explanation
from compilescope.report.places import brief_place, told_apart
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")
LIBRARY = "/venv/lib/python3.11/site-packages/transformers/models/gpt2/modeling_gpt2.py"


def test_a_file_keeps_its_whole_name() -> None:
    name = "diffusers/models/unets/unet_2d_condition.py"
    at = brief_place(f"/venv/lib/python3.11/site-packages/{name}", 1042, ROOT)
    assert at == "unet_2d_condition.py:1042"
    assert brief_place(f"{ROOT}/net.py", 3, ROOT) == "net.py:3"
    long = brief_place(f"{ROOT}/{'a' * 30}_{'b' * 30}.py", 3, ROOT)
    assert len(long) == 40 and long.startswith("aaaa") and long.endswith("bbb.py:3")


@pytest.mark.parametrize("most", [12, 20, 34])
def test_what_differs_stays(most: int) -> None:
    texts = [f"forward recompiles: self.encoder.layers[0].attention.{n}.size()[0]" for n in "qkv"]
    shown = told_apart(texts, most)
    assert len(set(shown)) == 3 and all(len(each) <= most for each in shown)
    assert told_apart(["a" * 50, "b" * 50], most) == ["a" * 50, "b" * 50]


def breaks(*columns: tuple[int, int]) -> list[tuple[Body, tuple[Frame, ...]]]:
    source = "        stats.add(loss.item(), reward.item())"
    title = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
    return [
        (
            GraphBreak(gb_type=title, gb_id="GB0124", frame=CODE),
            (frame(102, column=a, end_column=b, source=source),),
        )
        for a, b in columns
    ]


def reading(*found: tuple[Body, tuple[Frame, ...]]) -> Reading:
    return Reading(run_of(*(event(b, number=n, stack=s) for n, (b, s) in enumerate(found, 1))))


def test_two_values_of_one_line_are_told_apart() -> None:
    guards = [
        FailedGuard(f"{s} == 2", s, "2", "3", frame=frame(file=LIBRARY))
        for s in (
            "self.blocks[0].attention.mask_of_the_keys",
            "self.blocks[0].attention.mask_of_it",
        )
    ]
    found = reading(
        *((Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),)), (frame(),)) for guard in guards)
    )
    rows = [plain(row[1]) + plain(row[2])[:24] for row in causes_table(found, 1).rows]
    assert len(set(rows)) == 2


def test_a_global_variable_has_its_own_name() -> None:
    (row,) = causes_table(recompiled("G['acc']._count", f"{ROOT}/model.py"), 1).rows
    assert plain(row[2]) == "forward recompiles: acc._count"


def recompiled(subject: str, file: str) -> Reading:
    guard = FailedGuard(
        f"{subject} == 2", subject, "2", "3", frame=frame(file=file, source="y = {")
    )
    stack = (Frame(f"{ROOT}/train.py", 57, "main", source="    loss = compiled(**batch).loss"),)
    return reading((Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),)), stack))


def test_the_users_call_leads_where_the_guard_is_in_a_library() -> None:
    found = recompiled("kwargs['input_ids'].size()[1]", LIBRARY)
    text = to_text(report_document(found))
    assert "1 train.py:57 in main" in text and "\n        loss = compiled(**batch).loss" in text
    assert "guarded at transformers/models/gpt2/modeling_gpt2.py:8 in forward\n" in text
    (cause,) = found.causes
    assert cause.called_at is not None and cause.called_at.line == 57


def test_an_argument_is_told_of_with_its_call() -> None:
    own = f"{ROOT}/model.py"
    text = to_text(report_document(recompiled("x.size()[0]", own)))
    assert "1 model.py:8 in forward" in text
    assert "called at train.py:57 in main: `loss = compiled(**batch).loss`" in text
    assert "called at" not in to_text(report_document(recompiled("self.steps", own)))


def test_a_break_in_a_library_says_from_where_it_is_called() -> None:
    (body, _), *_ = breaks((18, 29))
    stack = (
        Frame(f"{ROOT}/train.py", 57, "main", source="    trainer.train()"),
        Frame(LIBRARY, 700, "forward", source="loss = f(", origin="library"),
    )
    found = reading((body, stack))
    text = to_text(report_document(found))
    assert "1 transformers/models/gpt2/modeling_gpt2.py:700 in forward" in text
    assert "called at train.py:57 in main: `trainer.train()`" in text
    call = {"file": f"{ROOT}/train.py", "line": 57, "function": "main"}
    call["source"] = "    trainer.train()"
    assert digest_json(found.digest)["sites"][0]["called_at"] == call
    page = to_html(report_document(Reading(found.run, full=True, page=True)))
    assert page.count("called at") == 2 and "trainer.train()" in page
    explained = to_markdown(explanation(found, [1]))
    assert "called at **train.py:57** in main: `trainer.train()`" in explained
