"""The house: layers, rooms, and what may be imported where."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "compilescope"
ROOMS = {
    "model",
    "registry",
    "rules",
    "torchapi",
    "capture",
    "report",
    "explain",
    "cli",
    "backends",
    "diff",
    "logs",
    "minify",
    "fixes",
    "repair",
    "site",
    "learn",
    "demo",
    "bench",
    "sweep",
    "dashboard",
    "scale",
    "pytest_plugin",
}
FRONT = {
    "__init__.py",
    "__main__.py",
    "accelerators.py",
    "numbers.py",
    "errors.py",
    "forking.py",
    "front.py",
    "inspector.py",
    "objects.py",
    "plugins.py",
    "process_streams.py",
    "process_table.py",
    "processes.py",
    "project.py",
    "settings.py",
    "version.py",
}
TORCH_FREE = (
    "model",
    "registry",
    "rules",
    "fixes",
    "report",
    "explain",
    "logs",
    "site",
    "learn",
    "demo",
    "scale",
    "sweep",
    "dashboard",
    "process_streams",
    "process_table",
    "processes",
    "cli",
    "plugins",
    "errors",
    "project",
    "settings",
)

_BLOCK_TORCH = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
"""

COMMANDS = sorted((PACKAGE / "cli" / "commands").glob("[a-z]*.py"))


def sources() -> list[Path]:
    """The tool's own code: registry examples, lessons and programs are like users', and never
    imported."""
    rooms = ("registry/examples", "lessons", "demo/programs", "sweep/programs")
    theirs = {PACKAGE / room for room in rooms}
    return sorted(path for path in PACKAGE.rglob("*.py") if not theirs & set(path.parents))


@cache
def parsed(path: Path) -> list[ast.AST]:
    """Every node, the module first."""
    return list(ast.walk(ast.parse(path.read_text())))


def test_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("import-linter is not installed")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_file_has_a_room() -> None:
    for path in sources():
        inside = path.relative_to(PACKAGE)
        assert inside.parts[0] in ROOMS | FRONT, f"{inside} has no room"


def test_torch_free_packages_import_with_torch_blocked() -> None:
    names = [
        f"compilescope.{'.'.join(path.relative_to(PACKAGE).with_suffix('').parts)}"
        for path in sources()
        if path.relative_to(PACKAGE).with_suffix("").parts[0] in TORCH_FREE
    ]
    # A command may be called `import`, which the statement could not name.
    names = [name.removesuffix(".__init__") for name in names]
    code = _BLOCK_TORCH + f"import importlib\nfor n in {names}: importlib.import_module(n)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [[], *([path.stem] for path in COMMANDS)])
def test_help_imports_no_torch(command: list[str]) -> None:
    code = _BLOCK_TORCH + f"sys.argv = ['compilescope', *{command!r}, '--help']\n"
    code += "from compilescope.cli.main import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


@pytest.mark.torch
def test_every_public_name_is_there() -> None:
    """Their homes are written as text: no type checker would miss one that has moved."""
    import compilescope

    for name in compilescope.__all__:
        assert getattr(compilescope, name) is not None, name


def test_only_torchapi_reaches_into_torch() -> None:
    """Private names of torch live in one package."""
    for path in sources():
        room = path.relative_to(PACKAGE).parts[0]
        for node in parsed(path):
            modules = []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            private = [m for m in modules if m.startswith("torch.") and "._" in m]
            assert not private or room == "torchapi", f"{path}: {private}"


def test_only_the_settings_read_the_environment() -> None:
    for path in sources():
        if path.name == "settings.py":
            continue
        read = {"environ", "getenv", "putenv"}
        for node in parsed(path):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "os":
                assert node.attr not in read, path
            if isinstance(node, ast.ImportFrom) and node.module == "os":
                assert not read & {alias.name for alias in node.names}, path


def test_only_the_cli_prints() -> None:
    for path in sources():
        # What is embedded is the source of scripts, which print for themselves.
        if path.relative_to(PACKAGE).parts[0] == "cli" or path.parent.name == "embedded":
            continue
        calls = [
            node
            for node in parsed(path)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        ]
        assert not calls, path


def test_files_stay_small_and_say_what_they_own() -> None:
    for path in sources():
        assert len(path.read_text().splitlines()) <= 400, path
        module = parsed(path)[0]
        assert isinstance(module, ast.Module)
        assert ast.get_docstring(module), f"{path} has no docstring"


def test_nothing_is_unpickled() -> None:
    for path in sources():
        for node in parsed(path):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert not {"pickle", "marshal", "shelve", "dill"} & set(names), path
