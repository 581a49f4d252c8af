"""Questions about causes: what is in them, what is not, and who may answer."""

from __future__ import annotations

import builtins
import io
import json
import keyword
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import compilescope
from builders import ROOT, event, frame, run_of
from compilescope.apps.cli.main import main
from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.registry.table import load_registry
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import CompileFailed, GraphBreak, SourceSeen
from compilescope.record.run import Run
from compilescope.report.llm.prompt import Prompt, prompt_for
from compilescope.report.llm.question import questions_for
from compilescope.report.section import Reading
from samples import CODE, RUNS, SOURCE, store, with_artifacts

SECRET = f"{ROOT}/secret project/model.py"


def a_run() -> Run:
    artifacts = MemoryArtifacts()
    broken = GraphBreak(
        gb_type="Data-dependent branching",
        gb_id="GB0170",
        explanation="Detected data-dependent branching.",
        hints=("Use `torch.cond`.", "See https://pytorch.org/docs/main/cond.html."),
        context=f'<code object forward, file "{SECRET}"> in /home/ann/lib/x.py and C:\\me\\y.py',
        frame=CODE,
    )
    failed = CompileFailed("BackendCompilerFailed", "no such op", backend="toy", frame=CODE)
    events = (
        event(SourceSeen(f"{ROOT}/model.py", artifacts.put(SOURCE, "py")), number=0),
        event(broken, number=1, stack=(frame(8),)),
        event(failed, number=2, stack=(frame(7),)),
    )
    return with_artifacts(run_of(*events), artifacts)


def contents(run: Run, *, redacted: bool = False) -> list[str]:
    reading = Reading(run)
    asked = questions_for(run, reading.digest, reading.causes, redacted=redacted)
    return [prompt_for(question)[1]["content"] for question in asked]


def test_a_question_has_our_facts_and_pytorchs_own_words() -> None:
    failure, broken = contents(a_run())
    assert "Category: data-dependent-branch" in broken and "Why: " in broken
    pytorch = broken.split("BEGIN PYTORCH")[1].split("END PYTORCH")[0]
    assert "Explanation: Detected data-dependent branching." in pytorch
    assert "Hint: Use `torch.cond`." in pytorch and "Context: <code object forward" in pytorch
    assert "> 8:         if h.mean() > 0:" in broken
    assert "Error: BackendCompilerFailed: no such op" in failure


def test_no_question_has_a_folder() -> None:
    text = "\n".join(contents(a_run()))
    assert "https://pytorch.org/docs/main/cond.html" in text, "an address is no folder"
    for private in (ROOT, "/home/ann", "lib/", "C:\\"):
        assert private not in text
    assert "x.py and y.py" in text


def test_a_table_on_disk_adds_what_was_not_said() -> None:
    try:
        load_registry()
    except ToolError:
        pytest.skip("there is no torch here, and no table of its")
    run = run_of(
        event(GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=CODE), number=1)
    )
    [text] = contents(run)
    assert "From PyTorch's table of graph breaks, GB0170" in text and "control flow" in text


def test_a_redacted_question_has_none_of_the_users_names() -> None:
    source = SOURCE.replace("Model", "PayrollNet").replace("layer", "salary_head")
    artifacts = MemoryArtifacts()
    code = frame(8)
    run = with_artifacts(
        run_of(
            event(SourceSeen(f"{ROOT}/model.py", artifacts.put(source, "py")), number=0),
            event(GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170"), number=1,
                  stack=(code,)),
        ),
        artifacts,
    )  # fmt: skip
    [plain], [redacted] = contents(run), contents(run, redacted=True)
    assert "PayrollNet" in plain and "salary_head" in plain
    assert "PayrollNet" not in redacted and "salary_head" not in redacted
    assert "Data-dependent branching" in redacted and ".mean() > 0" in redacted


def test_a_user_may_name_things_with_the_words_of_the_question() -> None:
    """They stand in every question, so they say nothing about the user's code."""
    asked = " ".join(contents(a_run()))
    words = {word for word in re.findall(r"[A-Za-z]{3,}", asked) if not keyword.iskeyword(word)}
    assert "compilescope" in words
    source = SOURCE + "".join(f"{word} = 1\n" for word in sorted(words - {"forward", "self"}))
    artifacts = MemoryArtifacts()
    run = with_artifacts(
        run_of(
            event(SourceSeen(f"{ROOT}/model.py", artifacts.put(source, "py")), number=0),
            event(GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170"), number=1,
                  stack=(frame(8),)),
        ),
        artifacts,
    )  # fmt: skip
    assert contents(run, redacted=True)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_every_sample_can_be_asked_about(name: str) -> None:
    run = RUNS[name]
    reading = Reading(run)
    asked = questions_for(run, digest(run), reading.causes)
    assert len(asked) == len(reading.causes)


# Answers in Python


def loaded(tmp_path: Path, name: str = "full") -> Any:
    store(RUNS[name], tmp_path, f"abc123-{name}")
    return compilescope.load("abc", dir=str(tmp_path))


def test_a_function_answers(tmp_path: Path) -> None:
    run = loaded(tmp_path)
    prompts: list[Prompt] = []

    def ask(prompt: Prompt) -> str:
        prompts.append(prompt)
        return "Because \x1b[31mof <b>this</b>."

    got = run.explain(llm=ask)
    assert set(got.words.values()) == {"Because [31mof <b>this</b>."} and got.problem is None
    label = "A language model (ask) says, unverified:"
    assert label in str(got) and f"**{label}**" in got.to_markdown()
    assert label in got._repr_html_() and "&lt;b&gt;this" in got._repr_html_()
    assert [m["role"] for m in prompts[0].messages] == ["system", "user"]
    assert prompts[0].messages[1]["content"] in prompts[0]
    assert "words of ask" in repr(got)


def test_in_a_notebook_it_is_a_text_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = loaded(tmp_path)
    text, summary = str(run.explain()), run.summary()
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    assert "Why:" in text and str(run.explain()) == text and run.summary() == summary


def test_without_a_model_nobody_is_asked(tmp_path: Path) -> None:
    run = loaded(tmp_path)
    got = run.explain()
    assert got.words == {} and got.problem is None and "Why:" in str(got)
    assert "language model" not in str(got)
    with pytest.raises(ToolError, match="need llm"):
        run.explain(redact=True)


def test_a_problem_is_shown_and_ends_the_asking(tmp_path: Path) -> None:
    run = loaded(tmp_path)
    asked: list[str] = []
    got = run.explain(llm=lambda prompt: asked.append(prompt))
    assert got.problem == "your function returned no answer." and len(asked) == 1
    assert got.problem in str(got)
    refused = run.explain(llm="tiny", llm_url="http://127.0.0.1:1/v1")
    assert refused.problem and "the connection was refused" in refused.problem
    with pytest.raises(ToolError, match="must return text"):
        run.explain(llm=lambda prompt: 3)
    with pytest.raises(ZeroDivisionError):
        run.explain(llm=lambda prompt: str(1 // 0))
    with pytest.raises(ToolError, match="a model's name, True or a function"):
        run.explain(llm=3)


def test_answers_are_kept_if_a_later_question_fails(tmp_path: Path) -> None:
    run = loaded(tmp_path)
    said = iter(["Because."])

    def quota(prompt: Prompt) -> str:
        try:
            return next(said)
        except StopIteration:
            raise OSError("429: out of quota") from None

    got = run.explain(llm=quota)
    assert list(got.words.values()) == ["Because."]
    assert got.problem == "quota raised OSError: 429: out of quota."
    assert got.problem in str(got)


# On the command line


class Handler(BaseHTTPRequestHandler):
    bodies: list[bytes]
    keys: list[str | None]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.keys.append(self.headers["Authorization"])
        choice = {"message": {"content": "Because of `mean`."}, "finish_reason": "stop"}
        data = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[tuple[str, type[Handler]]]:
    fresh = type("Fresh", (Handler,), {"bodies": [], "keys": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), fresh) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/v1", fresh
        running.shutdown()


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def call(home: Path, *words: str, **more: str) -> Done:
    """In this process: a new one would cost seconds."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY"):
            patch.delenv(name, raising=False)
        for name, value in {"XDG_CACHE_HOME": str(home / ".cache"), **more}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["compilescope", *words, "--dir", str(home)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main()
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def test_the_dry_run_is_what_is_sent(tmp_path: Path, recorder: Any) -> None:
    url, server = recorder
    store(a_run(), tmp_path, "abc123-full")
    words = ("--llm-url", url, "--llm-model", "tiny")
    shown = call(tmp_path, "explain", "--llm-dry-run", *words, OPENAI_API_KEY="sk-1")
    assert shown.returncode == 0 and server.bodies == [], shown.stderr
    assert "Authorization: Bearer $OPENAI_API_KEY" in shown.stdout and "sk-1" not in shown.stdout
    assert "--- cause 1, user message" in shown.stdout
    listed = call(tmp_path, "explain", "--llm-dry-run", "--json", *words)
    requests = json.loads(listed.stdout)["requests"]
    done = call(tmp_path, "report", "--llm", "--format", "md", *words, OPENAI_API_KEY="sk-1")
    assert [request["body"].encode() for request in requests] == server.bodies, done.stderr
    assert len(server.bodies) == 2
    assert all(body.decode() in shown.stdout.splitlines() for body in server.bodies)
    assert set(server.keys) == {"Bearer sk-1"}
    assert done.stdout.count("> **A language model (tiny) says, unverified:**") == 2
    again = json.loads(call(tmp_path, "explain", "--llm", "--json", *words).stdout)
    assert set(again["llm"].values()) == {"Because of `mean`."}
    assert len(server.bodies) == 2, "the answers were kept"


def test_options_that_need_llm(tmp_path: Path) -> None:
    store(a_run(), tmp_path, "abc123-full")
    done = call(tmp_path, "explain", "--llm-url", "http://localhost/v1")
    assert done.returncode == 2 and "--llm-url needs --llm" in done.stderr
