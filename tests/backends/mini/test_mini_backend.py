"""The small compiler behind torch.compile."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope import MiniAdapter  # noqa: E402
from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.base.settings import read_mini_settings  # noqa: E402
from docs_pages import page_text  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("library")]
nn = torch.nn
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _agree(function, *inputs, **settings):
    adapter = MiniAdapter(**settings)
    given = torch.compile(function, backend=adapter)(*inputs)
    torch.testing.assert_close(given, function(*inputs))
    return adapter


def test_generated_code_runs(library):
    def function(x, y):
        return torch.softmax(torch.sin(x) @ y, -1) * 2 + x.sum()

    x, y = torch.randn(8, 16), torch.randn(16, 32)
    adapter = _agree(function, x, y, without_compiler="raise")
    [graph] = adapter.report.graphs
    assert (graph.device_ops, len(graph.islands)) == (graph.ops, 1)
    assert graph.islands[0].status == "compiled"
    assert (adapter.counts.compiled, adapter.counts.interpreted) == (1, 0)


def test_it_is_known_by_name():
    assert "compilescope_mini" in torch.compiler.list_backends()
    compiled = torch.compile(lambda x: x * 2 + 1, backend="compilescope_mini")
    torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 3.0))


def test_what_it_cannot_take_stays_on_the_host():
    model = nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4), nn.GELU())
    with torch.no_grad():
        adapter = _agree(model, torch.randn(2, 2, 6), runs="interpreted")
    [graph] = adapter.report.graphs
    assert [left.op for left in graph.host] == ["aten.convolution.default"]


def test_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    x, target = torch.randn(5, 6), torch.tensor([0, 1, 2, 0, 1])

    def step(run):
        model.zero_grad()
        nn.functional.cross_entropy(run(x), target).backward()
        return [p.grad.clone() for p in model.parameters()]

    adapter = MiniAdapter(runs="interpreted")
    torch.testing.assert_close(step(torch.compile(model, backend=adapter)), step(model))
    assert [graph.stage for graph in adapter.report.graphs] == ["aot_forward", "aot_backward"]


def test_sizes_that_change_are_compiled_as_they_come():
    adapter = MiniAdapter(runs="interpreted")
    function = torch.compile(lambda x: torch.softmax(x, -1).sum(0), backend=adapter, dynamic=True)
    for rows in (3, 5, 3, 5, 8):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(function(x), torch.softmax(x, -1).sum(0))
    assert (adapter.counts.compiled, adapter.counts.respecialized) == (3, 2)


def test_results_that_are_inputs_or_views_or_come_twice():
    def function(x):
        y = x * 2
        return x, y, y, y.t(), x[0], y.reshape(-1)

    for x in (torch.randn(3, 4), torch.randn(4, 3).t(), torch.randn(6, 8)[::2, ::2]):
        _agree(function, x, runs="interpreted")


@pytest.mark.parametrize(
    "shape", [(), (2, 0, 3), *(pytest.param(s, marks=pytest.mark.slow) for s in ((0,), (1, 1)))]
)
def test_odd_shapes(shape):
    _agree(lambda x: (x + 1, torch.exp(x) * 2), torch.randn(shape), runs="interpreted")


def test_attention_is_taken_apart():
    def attend(q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    inputs = [torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3)]
    adapter = MiniAdapter(runs="interpreted")
    given = torch.compile(attend, backend=adapter)(*inputs)
    torch.testing.assert_close(given, attend(*inputs))
    assert all(graph.device_ops == graph.ops for graph in adapter.report.graphs)


def test_dropout_draws_as_eager_mode():
    def function(x):
        return nn.functional.dropout(x * 2, 0.5) + 1

    x = torch.randn(64)
    torch.manual_seed(3)
    given = torch.compile(function, backend=MiniAdapter(runs="interpreted"))(x)
    torch.manual_seed(3)
    torch.testing.assert_close(given, function(x))


def test_a_cxx_compiler_that_fails_at_the_code(tmp_path, monkeypatch):
    """Of the library's own output: the interpreter runs in its place, and says so."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    adapter = MiniAdapter(flags="-no-such-flag")
    monkeypatch.setattr(MiniAdapter, "_library", property(lambda self: _shared))
    torch.testing.assert_close(
        torch.compile(lambda x: x + 41, backend=adapter)(torch.ones(2)), torch.full((2,), 42.0)
    )
    assert adapter.counts.interpreted == 1
    [island] = adapter.report.graphs[0].islands
    assert "interpreter" in island.warnings[0]
    strict = MiniAdapter(flags="-no-such-flag", without_compiler="raise", fallback="refuse")
    with pytest.raises(Exception, match=r"no-such-flag|failed"):
        torch.compile(lambda x: x + 43, backend=strict)(torch.ones(2))


@pytest.fixture(autouse=True)
def shared(library):
    global _shared
    _shared = library


def test_bad_graphs_are_one_sentence(library):
    from compilescope.backends.mini.library import MiniError

    for text in ("", "mini 1\n%0 = nonsense : f32[2]\nreturn %0", "mini 1\nreturn %7", "\0\1"):
        with pytest.raises(MiniError) as error:
            library.compile(text, {})
        assert str(error.value)


def test_a_pass_that_does_not_exist():
    with pytest.raises(Exception, match=r"no pass named 'magic'.*\n.*cse"):
        torch.compile(lambda x: x + 1, backend=MiniAdapter(off=["magic"]))(torch.ones(1))
    with pytest.raises(TypeError, match="list of passes"):
        MiniAdapter(off="cse")


def test_the_environment():
    found = read_mini_settings(
        {"COMPILESCOPE_MINI_OFF": "cse, fusion", "COMPILESCOPE_MINI_PLANT": "x"}
    )
    assert (found.off, found.planted, found.threads) == (("cse", "fusion"), "x", 0)
    with pytest.raises(ToolError, match="number of threads"):
        read_mini_settings({"COMPILESCOPE_MINI_THREADS": "many"})


def test_verify():
    adapter = MiniAdapter(runs="interpreted")
    assert adapter.verify(lambda x: torch.tanh(x) * 2, torch.randn(8, 8)).verdict == "pass"


def test_the_page_is_true(library):
    page = page_text("mini")
    for snippet in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(snippet, {})
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", page, re.M)[-7:] == list(library.passes)


@pytest.mark.slow
def test_a_wrong_pass_shows_in_diff(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "def model(x):\n    return torch.tanh(x) @ x.t()\n"
        "def build():\n    return model, (torch.randn(8, 8),)\n"
    )
    command = [str(Path(sys.executable).with_name("compilescope")), "diff", f"{program}:build"]
    command += ["--test-backend", "compilescope_mini", "--localize", "--dir", str(tmp_path)]
    env = {**os.environ, "COMPILESCOPE_MINI_PLANT": "layout"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1, done.stderr
    assert "pass layout" in done.stdout
    env["COMPILESCOPE_MINI_OFF"] = "layout"
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("train", [False, True])
def test_bert(train):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        vocab_size=100, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).train(train)
    ids = torch.randint(0, 100, (2, 16))
    adapter = MiniAdapter()
    harness = compilescope.KernelDiffHarness(
        model, (ids,), kwargs={"labels": ids}, test_backend=adapter, train=train
    )
    assert harness.compare().verdict == "pass"
    assert adapter.counts.interpreted == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_compilers_own_tests(tmp_path):
    if not shutil.which("ctest"):
        pytest.skip("no CTest")
    for command in (
        ["cmake", "-S", str(ROOT / "cpp"), "-B", str(tmp_path), "-DCMAKE_BUILD_TYPE=Release"],
        ["cmake", "--build", str(tmp_path), "-j", "2"],
        ["ctest", "--test-dir", str(tmp_path), "--output-on-failure"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
