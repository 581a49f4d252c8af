"""A crash is known by its exception and what is at its bottom; programs shrink to that."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compilescope.base.settings import fresh_environment
from compilescope.change.minify.sandbox import TaskResult
from compilescope.change.minify.script.embedded.crashes import crash_sign
from compilescope.change.minify.source.findings import (
    SourceFinding,
    TrialResult,
    choose,
    died,
    how_known,
    is_of_compiler,
    source_finding,
)
from compilescope.change.minify.source.program_sandbox import seen_in
from compilescope.change.minify.source.script import Story, finished_script

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.timeout(3600)]


def _sign(function: Any, *args: Any, **options: Any) -> tuple[str, ...]:
    torch._dynamo.reset()
    with pytest.raises(Exception) as caught:
        torch.compile(function, **{"backend": "eager", **options})(*args)
    found: tuple[str, ...] = crash_sign(caught.value)  # type: ignore[no-untyped-call]
    return found


def _add(x: Any, y: Any) -> Any:
    return x + y


def _strict(x: Any) -> Any:
    print("hello", x.shape)
    return x


def test_sizes_and_lines_are_no_part_of_it() -> None:
    def other(x: Any, y: Any) -> Any:
        z = x.sin()
        return (z, z + y)

    first = _sign(_add, torch.ones(5), torch.ones(4))
    assert first == _sign(other, torch.ones(2, 7), torch.ones(2, 3))
    outer, inner, words, where = first
    assert (outer, inner) == ("TorchRuntimeError", "RuntimeError")
    assert len(words) > 20 and not any(map(str.isdigit, words)), words
    assert ".py in " in where


def test_another_cause_at_the_bottom_is_another_crash() -> None:
    def product(x: Any, y: Any) -> Any:
        return x @ y

    def opened(x: Any) -> Any:
        return x, open("file")

    sums = _sign(_add, torch.ones(5), torch.ones(4))
    products = _sign(product, torch.ones(2, 3), torch.ones(4, 5))
    assert sums[0] == products[0] and sums != products
    printed, opens = (
        _sign(_strict, torch.ones(2), fullgraph=True),
        _sign(opened, torch.ones(2), fullgraph=True),
    )
    assert printed[0] == opens[0] == "Unsupported" and printed != opens
    assert "`print`" in printed[2] and "str" not in printed[2].partition("`print`")[2]


def test_the_backends_own_error_is_at_the_bottom() -> None:
    def picky(graph: Any, inputs: Any) -> Any:
        raise NotImplementedError(f"no room for {len(inputs)} inputs")

    sign = _sign(_add, torch.ones(2), torch.ones(2), backend=picky)
    assert sign[:3] == ("BackendCompilerFailed", "NotImplementedError", "no room for inputs")


def _cause(kind: Any, **given: Any) -> SourceFinding:
    plain = {"what": "t", "file": "p.py", "line": 1, "function": "f", "source": "", "title": "t"}
    return source_finding(kind, **{**plain, **given})


def test_the_crash_comes_first() -> None:
    crash = _cause("failure", line=9, error="UserError", what="UserError")
    broke = _cause("break", line=3)
    same = _cause("break", line=9, error="UserError")
    choice = choose(TrialResult((broke, same, crash), "UserError"), None, None)
    assert choice is not None and choice.finding is crash
    assert choice.others == (broke,), "what fullgraph=True made an error is that crash"
    asked = choose(TrialResult((broke, same, crash), "UserError"), "break", None)
    assert asked is not None and asked.finding.kind == "break"


def test_a_signal_is_a_crash_and_a_lack_of_memory_is_none() -> None:
    seen = seen_in(TaskResult("crashed", signal=signal.SIGSEGV))
    assert isinstance(seen, TrialResult) and seen.error == "SIGSEGV"
    assert seen.findings[0] == died(signal.SIGSEGV)  # type: ignore[union-attr]
    assert seen_in(TaskResult("memory", signal=signal.SIGKILL)) == "crashed"
    assert seen_in(TaskResult("crashed", signal=signal.SIGTERM)) == "crashed"
    assert seen_in(TaskResult("crashed")) == "crashed"


def test_how_it_is_known_is_said() -> None:
    crash = _cause("failure", what="TorchRuntimeError", reason="RuntimeError: no", subject="trace")
    words = how_known(crash)
    assert "TorchRuntimeError" in words and "root cause (RuntimeError: no)" in words
    assert is_of_compiler(crash) and "without torch.compile" not in words
    own = _cause("failure", what="KeyError", reason="KeyError: 'a'", subject="run")
    assert not is_of_compiler(own) and "no exception without torch.compile" in how_known(own)


STORY = Story("program.py:1, in f", "2.13", 10)
RAISES = "import torch\ndef failure(x):\n    raise KeyError('a{b}')\nfailure(1)\n"


@pytest.mark.parametrize("guarded", [False, True])
def test_a_script_tells_the_crash_from_others_and_from_none(tmp_path: Path, guarded: bool) -> None:
    crash = _cause("failure", what="KeyError", reason="KeyError: 'a{b}'", subject="run")
    script = finished_script(RAISES, crash, STORY, guarded=guarded)
    assert "compilescope" not in script
    assert _status(script, tmp_path) == 1
    assert _status(script.replace("raise KeyError('a{b}')", "pass"), tmp_path) == 0
    assert _status(script.replace("raise KeyError('a{b}')", "1 / 0"), tmp_path) == 2


def test_a_script_looks_at_a_signal_from_outside(tmp_path: Path) -> None:
    crash = died(signal.SIGSEGV)
    assert crash is not None
    text = "import os\nimport torch\nimport signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    script = finished_script(text, crash, STORY, guarded=False)
    assert _status(script, tmp_path) == 1
    assert _status(script.replace("os.kill(os.getpid(), signal.SIGSEGV)", "pass"), tmp_path) == 0
    assert _status(script.replace("os.kill(os.getpid(), signal.SIGSEGV)", "1 / 0"), tmp_path) == 2


def _status(script: str, folder: Path) -> int:
    path = folder / "repro.py"
    # Torch is not needed here, and takes seconds to import.
    path.write_text(script.replace("import torch\n", ""))
    done = subprocess.run([sys.executable, str(path)], env=fresh_environment(), timeout=300)
    return done.returncode


PROGRAMS = {
    "shapes": (
        "TorchRuntimeError",
        "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.a = torch.nn.Linear(4, 5)\n"
        "        self.b = torch.nn.Linear(4, 5)\n\n    def forward(self, x):\n"
        "        h = torch.relu(self.a(x))\n        print('hidden', h.shape)\n"
        "        return self.b(h) + 1\n\nnet = torch.compile(Net(), backend='eager')\n"
        "for n in range(3):\n    net(torch.ones(2, 4))\n",
    ),
    "branch": (
        "UncapturedHigherOrderOpError",
        "import torch\nlog = []\n\ndef pick(x):\n    def yes(x):\n        log.append(1)\n"
        "        return x + 1\n    def no(x):\n        return x - 1\n    y = x * 2\n"
        "    return torch.cond(y.sum() > 0, yes, no, (y,))\n\n"
        "torch.compile(pick, backend='eager')(torch.ones(3))\n",
    ),
    "fullgraph": (
        "Unsupported",
        "import torch\n\n@torch.compile(backend='eager')\ndef warm(x):\n    print('warm')\n"
        "    return x + 1\n\n@torch.compile(backend='eager', fullgraph=True)\ndef strict(x):\n"
        "    y = x + 1\n    open('file')\n    return y\n\nwarm(torch.ones(2))\n"
        "strict(torch.ones(2))\n",
    ),
    "inside dynamo": (
        "InternalTorchDynamoError",
        "import torch\nimport torch._dynamo.variables.builder as builder\n"
        "original = builder.VariableBuilder._wrap\ndef wrap(self, value):\n"
        "    if isinstance(value, complex):\n        raise KeyError('slot')\n"
        "    return original(self, value)\nbuilder.VariableBuilder._wrap = wrap\nphase = 1j\n\n"
        "def rotate(x):\n    y = x * 2\n    return (y * phase).real\n\n"
        "torch.compile(rotate, backend='eager')(torch.ones(3))\n",
    ),
    "only compiled": (
        "KeyError",
        "import torch\n\ndef load(flag):\n    table = {'eager': 1}\n"
        "    return table['compiled' if flag else 'eager']\n\ndef model(x):\n    y = x + 1\n"
        "    return y, torch.compiler.is_compiling()\n\n"
        "values, flag = torch.compile(model, backend='eager')(torch.ones(2))\nprint(load(flag))\n",
    ),
    "backend": (
        "BackendCompilerFailed",
        "import torch\n\ndef picky(gm, inputs):\n    for node in gm.graph.nodes:\n"
        "        if 'sin' in str(node.target):\n            raise NotImplementedError('no sine')\n"
        "    return gm.forward\n\ndef model(x):\n    y = torch.relu(x) @ x.T\n"
        "    print('between')\n    return (y.sin() + 1).sum()\n\n"
        "torch.compile(model, backend=picky)(torch.randn(4, 4))\n",
    ),
    "signal": (
        "SIGSEGV",
        "import ctypes\nimport torch\n\ndef crashing(gm, inputs):\n    def call(*args):\n"
        "        if any('cumsum' in str(node.target) for node in gm.graph.nodes):\n"
        "            ctypes.string_at(0)\n        return gm.forward(*args)\n    return call\n\n"
        "def model(x):\n    y = torch.tanh(x)\n    print('tanh')\n    return y.cumsum(0) * 2\n\n"
        "torch.compile(model, backend=crashing)(torch.randn(5))\n",
    ),
    "signal in tracing": (
        "SIGABRT",
        "import os\nimport torch\nimport torch._dynamo.variables.builder as builder\n"
        "original = builder.VariableBuilder._wrap\ndef wrap(self, value):\n"
        "    if isinstance(value, complex):\n        os.abort()\n"
        "    return original(self, value)\nbuilder.VariableBuilder._wrap = wrap\nphase = 1j\n\n"
        "def rotate(x):\n    y = x * 2\n    return (y * phase).real\n\n"
        "torch.compile(rotate, backend='eager')(torch.ones(3))\n",
    ),
}


def _minify(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compilescope", "minify", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1800,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_crash_of_a_program_is_minified_without_a_word(tmp_path: Path, name: str) -> None:
    crash, text = PROGRAMS[name]
    (tmp_path / "program.py").write_text(text)
    done = _minify(tmp_path, "program.py", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["predicate"] == "crash" and answer["repro"] == "repro.py"
    assert f"crash: {crash}" in done.stderr or f"is killed by {crash}" in done.stderr
    assert "The same crash is the same" in done.stderr
    assert answer["size"] < answer["size_before"]
    again = subprocess.run([sys.executable, str(tmp_path / "repro.py")], env=fresh_environment())
    assert again.returncode == 1


@pytest.mark.slow
def test_an_error_of_the_programs_own_is_no_crash_of_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import torch\n\n@torch.compile(backend='eager')\ndef step(x):\n    print('hi')\n"
        "    return x + 1\n\nstep(torch.ones(2))\nopen('/nonexistent/file')\n"
    )
    done = _minify(tmp_path, "program.py", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["predicate"] == "break"
    assert "Skipping the crash (FileNotFoundError" in done.stderr
    asked = _minify(tmp_path, "program.py", "--predicate", "crash", "-o", "other.py")
    assert asked.returncode == 2 and "shows no crash" in asked.stderr
    assert "Traceback" not in asked.stderr
