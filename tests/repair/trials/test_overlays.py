"""New texts under old names: scripts, modules, packages, folders; nothing on disk changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

_TELL = """
import inspect, json, linecache, sys
def told():
    return sys._getframe().f_code.co_filename
print(json.dumps({
    "text": "%s", "name": __name__, "file": __file__, "argv": sys.argv, "path": sys.path[0],
    "package": __package__, "code": told(), "source": inspect.getsource(told),
    "line": linecache.getline(__file__, 2), "spec": __spec__ and __spec__.name,
}))
"""


def _watch(target: Target, version: Version, **more) -> CapturedRun:
    with Workbench(target, **more) as bench:
        return bench.watch(version)


def _told(seen: CapturedRun) -> dict:
    assert seen.exit_status == 0, seen.stderr.decode()
    return json.loads(seen.stdout.splitlines()[-1])


def test_a_script_runs_as_itself(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(_TELL % "old")
    plain = subprocess.run([sys.executable, str(file), "a", "-b"], capture_output=True, check=True)
    seen = _watch(Target("script", (str(file), "a", "-b")), Version({str(file): _TELL % "new"}))
    assert _told(seen) == {**json.loads(plain.stdout), "text": "new"}
    assert file.read_text() == _TELL % "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_script_by_a_relative_name_and_a_link(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "real").mkdir()
    file = tmp_path / "real" / "program.py"
    file.write_text(_TELL % "old")
    (tmp_path / "link.py").symlink_to(file)
    monkeypatch.chdir(tmp_path)
    plain = subprocess.run([sys.executable, "link.py"], capture_output=True, check=True)
    seen = _watch(Target("script", ("link.py",)), Version({str(file): _TELL % "new"}))
    assert _told(seen) == {**json.loads(plain.stdout), "text": "new"}


def test_modules_packages_and_relative_imports(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)  # A namespace package: it has no __init__.
    (package / "__init__.py").write_text("from .one import one\nTEXT = 'old'\n")
    (package / "one.py").write_text("from .inner.two import two\n\n\ndef one():\n    return two\n")
    (package / "inner" / "two.py").write_text("two = 'old'\n")
    script = tmp_path / "program.py"
    script.write_text("import package\nprint(package.TEXT, package.one())\n")
    assert subprocess.run([sys.executable, str(script)], capture_output=True).stdout == b"old old\n"
    new = {
        str(package / "inner" / "two.py"): "two = 'new'\n",
        str(package / "__init__.py"): "from .one import one\nTEXT = 'new'\n",
    }
    assert _watch(Target("script", (str(script),)), Version(new)).stdout == b"new new\n"
    assert subprocess.run([sys.executable, str(script)], capture_output=True).stdout == b"old old\n"


def test_a_package_by_m_and_a_folder(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    main = package / "__main__.py"
    main.write_text(_TELL % "old")
    monkeypatch.chdir(tmp_path)
    version = Version({str(main): _TELL % "new"})
    for target, command in (
        (Target("module", ("package", "x")), ["-m", "package", "x"]),
        (Target("script", ("package", "x")), ["package", "x"]),
    ):
        plain = subprocess.run([sys.executable, *command], capture_output=True, check=True)
        assert _told(_watch(target, version)) == {**json.loads(plain.stdout), "text": "new"}


def test_code_on_the_command_line_sees_new_modules(tmp_path: Path, monkeypatch) -> None:
    module = tmp_path / "module.py"
    module.write_text("text = 'old'\n")
    monkeypatch.chdir(tmp_path)
    target = Target("code", ("import module; print(module.text)",))
    seen = _watch(target, Version({str(module): "text = 'new'\n"}))
    assert seen.stdout == b"new\n"


def test_tracebacks_show_the_new_lines_and_no_frame_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("print(1)\n")
    text = "def f():\n    raise ValueError('new')\n\n\nf()\n"
    seen = _watch(Target("script", (str(file),)), Version({str(file): text}))
    assert seen.exit_status == 1
    said = seen.stderr.decode()
    assert "raise ValueError('new')" in said
    assert "compilescope" not in said
    ended = _watch(Target("script", (str(file),)), Version({str(file): "import sys\nsys.exit(7)"}))
    assert ended.exit_status == 7


def test_spawned_children_see_the_new_main(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    text = (
        "import multiprocessing\n\n\ndef f(n):\n    return 'TEXT', n\n\n\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(f, [1]))\n"
    )
    file.write_text(text.replace("TEXT", "old"))
    new = Version({str(file): text.replace("TEXT", "new")})
    assert _watch(Target("script", (str(file),)), new).stdout == b"[('new', 1)]\n"


def test_stdin_environment_and_seeds(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "import os, random, sys\nprint(sys.stdin.read(), os.environ['A'], random.random(), "
        "hash('a'))\n"
    )
    target, version = Target("script", (str(file),)), Version(environment={"A": "b"})
    first = _watch(target, version, stdin=b"in")
    assert first.stdout.startswith(b"in b ")
    assert _watch(target, version, stdin=b"in").stdout == first.stdout
    assert _watch(target, version, stdin=b"in", seed=5).stdout != first.stdout


def test_an_earlier_sitecustomize_still_runs(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.mark = 'on'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    file = tmp_path / "program.py"
    file.write_text("print(mark)\n")
    for autoload in ("1", "0"):
        monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", autoload)
        seen = _watch(Target("script", (str(file),)), Version({str(file): "print(mark, 'new')\n"}))
        assert seen.stdout == b"on new\n", seen.stderr.decode()


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    file = tmp_path / "program.py"
    file.write_text("print(1)\n")
    with pytest.raises(KeyboardInterrupt), Workbench(Target("script", (str(file),))) as bench:
        bench.watch(Version())
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [file]
