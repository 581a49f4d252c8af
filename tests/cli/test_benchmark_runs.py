"""What list, show, explain, report, compare, check and export make of a benchmark run."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from benchmark_runs import MACHINE, bench_run, benchmark_run, row
from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.benchmarks import benchmarks
from compilescope.record.run import Run, read_run
from samples import full_run, store


def pair(inductor: float, seed: int, eager: float = 100.0, threads: int = 2) -> Run:
    return bench_run(
        row("bert", "eager", eager, seed=seed),
        row("bert", "inductor", inductor, eager=eager, seed=seed + 9),
        machine=msgspec.structs.replace(MACHINE, threads=threads),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    store(benchmark_run(), home, "aaa111-models")
    store(pair(70, 1), home, "bbb222-before")
    store(pair(80, 2, threads=4), home, "ccc333-slower")
    store(full_run(), home, "ddd444-program")
    return home


def call(home: Path, *words: str) -> Result:
    return CliRunner().invoke(group, [*words, "--dir", str(home)])


def printed(home: Path, *words: str) -> str:
    done = call(home, *words)
    assert done.exit_code == 0, done.output
    return done.stdout


def problem(home: Path, *words: str) -> ToolError:
    error = call(home, *words).exception
    assert isinstance(error, ToolError), error
    assert error.exit_code == 2
    return error


@pytest.mark.parametrize("words", [("show",), ("analyze",), ("show", "--all"), ("explain",)])
def test_it_is_not_taken_for_a_program(home: Path, words: tuple[str, ...]) -> None:
    text = printed(home, *words, "aaa")
    for wrong in ("imported torch", "Nothing was compiled", "0 graphs", "The program"):
        assert wrong not in text
    assert max(map(len, text.splitlines())) <= 80


def test_show_fits_two_screens_with_every_model(home: Path) -> None:
    text = printed(home, "show", "aaa")
    assert len(text.splitlines()) < 48 and "more" not in text.split("Benchmarks")[0]
    for model in ("bert", "resnet", "mamba"):
        assert text.count(model) >= 2


def test_list_says_what_it_is(home: Path) -> None:
    assert "compilescope bench --all" in printed(home, "list")


def test_explain_of_a_run_without_failures(home: Path) -> None:
    assert "No benchmark failed." in printed(home, "explain", "bbb")


def test_show_as_json_has_every_key(home: Path) -> None:
    value = json.loads(printed(home, "show", "aaa", "--json"))
    assert len(value["benchmarks"]) == 12
    assert value["benchmarks"][-1]["latency_ms"] is None
    assert value["torch"] == "2.13.0+cpu"


def test_one_section(home: Path) -> None:
    assert "peak memory" in printed(home, "show", "aaa", "--section", "benchmarks")


@pytest.mark.parametrize("form", ["html", "md", "json", "sarif", "terminal", "trace"])
def test_reports(home: Path, form: str, tmp_path: Path) -> None:
    file = tmp_path / "report"
    printed(home, "report", "aaa", "--format", form, "-o", str(file))
    assert file.stat().st_size > 100 or form == "trace"


def test_compare(home: Path) -> None:
    pytest.importorskip("scipy")
    text = printed(home, "compare", "bbb", "ccc")
    assert "1 benchmark in both runs: 1 slower." in text
    assert "threads: 2 before, 4 after" in text
    value = json.loads(printed(home, "compare", "bbb", "ccc", "--json"))
    verdicts = {each["backend"]: each["verdict"] for each in value["benchmarks"]}
    assert verdicts == {"eager": "no real change", "inductor": "slower"}
    assert value["benchmarks"][1]["before"]["compile_mode"] == ""
    for form in ("md", "html"):
        assert "slower" in printed(home, "compare", "bbb", "ccc", "--format", form)


def test_compare_needs_two_of_a_kind(home: Path) -> None:
    told = "ddd444-program is not a benchmark run, so it can't be compared with one."
    assert problem(home, "compare", "bbb", "ddd").message == told
    assert problem(home, "compare", "ddd", "bbb").message == told


def check(home: Path, run: str, *words: str, baseline: bool = False) -> tuple[int, str]:
    given = ["check", *([] if baseline else ["--no-baseline"]), "--run", run, *words]
    done = CliRunner().invoke(group, [*given, "--dir", str(home)], standalone_mode=False)
    assert done.exception is None, done.exception
    return int(done.return_value), done.stdout


def test_check_against_eager_mode(home: Path) -> None:
    assert check(home, "bbb", "--max-slowdown", "1.05")[0] == 0
    status, text = check(home, "aaa", "--max-slowdown", "1.05")
    assert status == 1
    assert "compilescope show aaa" in text and "too slow" in text


def test_check_against_an_earlier_run(home: Path) -> None:
    pytest.importorskip("scipy")
    status, text = check(home, "ccc", "--max-slowdown", "1.05", "--against", "bbb")
    assert status == 1 and "its earlier time" in text
    assert "threads: 2 before, 4 after" in " ".join(text.split())
    assert check(home, "ccc", "--max-slowdown", "1.5", "--against", "bbb")[0] == 0
    _, text = check(home, "ccc", "--max-slowdown", "1.05", "--against", "bbb", "--json")
    value = json.loads(text)
    assert value["against"] == "bbb222-before" and value["limits"]["slowdown"] == 1.05


def test_check_writes_its_files_and_annotations(home: Path, tmp_path: Path) -> None:
    files = [tmp_path / "x.xml", tmp_path / "x.sarif"]
    options = ("--junit", str(files[0]), "--sarif", str(files[1]), "--annotations")
    status, text = check(home, "aaa", "--max-slowdown", "1.05", *options)
    assert status == 1 and "::error title=compilescope%3A slowdown::" in text
    assert 'name="slowdown bert on inductor"' in files[0].read_text()
    rules = {result["ruleId"] for result in json.loads(files[1].read_text())["runs"][0]["results"]}
    assert rules == {"bench/failed", "bench/kerneldiff"}


def test_a_baseline_accepts_benchmarks_that_fail(home: Path, tmp_path: Path) -> None:
    words = ("--baseline", str(tmp_path / "base.json"))
    assert check(home, "aaa", *words, "--update-baseline", baseline=True)[0] == 0
    assert check(home, "aaa", *words, baseline=True)[0] == 0


def test_check_of_what_is_no_benchmark(home: Path) -> None:
    assert (
        "has no benchmarks" in problem(home, "check", "--run", "ddd", "--max-slowdown", "2").message
    )
    assert "needs a benchmark run" in problem(home, "check", "x.py", "--max-slowdown", "2").message
    assert (
        "needs --max-slowdown" in problem(home, "check", "--run", "bbb", "--against", "ccc").message
    )
    other = ("check", "--run", "bbb", "--max-slowdown", "2", "--against", "ddd")
    assert "ddd444-program has no benchmarks" in problem(home, *other).message


def test_the_limit_of_a_project(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.compilescope]\nmax-slowdown = 0.6\n")
    assert check(home, "bbb")[0] == 1
    # For programs it is no limit: all the others hold as if nothing had been said.
    assert "graph break" in check(home, "ddd")[1]
    (tmp_path / "pyproject.toml").write_text("[tool.compilescope]\nmax-slowdown = 0\n")
    assert "a number above 0" in problem(home, "check", "--run", "bbb").message


@pytest.mark.parametrize("redact", [False, True])
def test_export_and_import(home: Path, tmp_path: Path, redact: bool) -> None:
    archive, other = tmp_path / "x.zip", tmp_path / "other"
    printed(home, "export", "aaa", "-o", str(archive), *(["--redact"] if redact else []))
    printed(other, "import", str(archive))
    (folder,) = (path for path in other.iterdir() if path.is_dir())
    before, after = benchmarks(benchmark_run()), benchmarks(read_run(folder))
    assert [each.runs_ms for each in after] == [each.runs_ms for each in before]
    assert [each.speedup_ci for each in after] == [each.speedup_ci for each in before]
    assert [each.backend == "eager" for each in after] == [
        each.backend == "eager" for each in before
    ]
    if redact:
        text = "".join(path.read_text() for path in folder.glob("events*"))
        assert "mamba" not in text and "/home/ada" not in text
    assert "is faster than eager mode on 2 of 3 models" in printed(other, "show")
