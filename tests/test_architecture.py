"""The house: layers, rooms, and what may be imported where."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from parsed_source import nodes_of, tree_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "compilescope"
ROOMS = {
    "processes",
    "model",
    "registry",
    "source",
    "findings",
    "graphs",
    "profiles",
    "rules",
    "analysis",
    "sharing",
    "torchapi",
    "tensors",
    "recorder",
    "report",
    "llm",
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
    "tune",
    "sweep",
    "dashboard",
    "scale",
    "pytest_plugin",
}
FRONT = {
    "__init__.py",
    "__main__.py",
    "accelerators.py",
    "automatic.py",
    "bundles.py",
    "digests.py",
    "numbers.py",
    "errors.py",
    "front.py",
    "local_requests.py",
    "magics.py",
    "inspector.py",
    "objects.py",
    "outputs.py",
    "patterns.py",
    "texts.py",
    "plugins.py",
    "project.py",
    "settings.py",
    "version.py",
}
TORCH_FREE = (
    "model",
    "registry",
    "source",
    "findings",
    "graphs",
    "profiles",
    "rules",
    "analysis",
    "sharing",
    "fixes",
    "report",
    "llm",
    "logs",
    "site",
    "learn",
    "demo",
    "scale",
    "sweep",
    "dashboard",
    "outputs",
    "processes",
    "cli",
    "plugins",
    "bundles",
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

# A command is a file, or a folder with what only that command needs.
COMMANDS = sorted((PACKAGE / "cli" / "commands").glob("[a-z]*"))


def sources() -> list[Path]:
    """The tool's own code: examples, lessons and programs are like users', and never imported."""
    rooms = ("registry/examples", "lessons", "demo/programs", "sweep/programs")
    theirs = {PACKAGE / room for room in rooms}
    theirs |= {*PACKAGE.glob("rules/*/examples"), *PACKAGE.glob("fixes/*/examples")}
    return sorted(path for path in PACKAGE.rglob("*.py") if not theirs & set(path.parents))


_ALL_HELPS = """
from compilescope.cli.main import main
for command in {commands!r}:
    sys.argv = ["compilescope", *command, "--help"]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, command
"""


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


def test_help_imports_no_torch() -> None:
    """Of all commands in one process: a start for each would cost more than all of them."""
    commands = [[], *([path.stem.replace("_", "-")] for path in COMMANDS)]
    code = _BLOCK_TORCH + _ALL_HELPS.format(commands=commands)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: compilescope") == len(commands)


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
        for node in nodes_of(path):
            modules = []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            private = [m for m in modules if m.startswith("torch.") and "._" in m]
            assert not private or room == "torchapi", f"{path}: {private}"


def test_only_the_settings_read_the_environment() -> None:
    for path in sources():
        # The boot code runs in every Python of a program, before anything of ours is imported.
        if path.name in ("settings.py", "compilescope_boot.py"):
            continue
        read = {"environ", "getenv", "putenv"}
        for node in nodes_of(path):
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
            for node in nodes_of(path)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        ]
        assert not calls, path


READ_WHOLE = {"fixes/index.py": "one table: which fix is asked about which kind of finding"}
"""Files of more than `MOST_LINES` that read better whole, and why."""
MOST_LINES = 560
"""Chosen: some concepts take as many; splitting them at 500 made halves that nobody reads alone."""


def test_files_stay_small_and_say_what_they_own() -> None:
    for path in sources():
        inside = path.relative_to(PACKAGE).as_posix()
        is_long = len(path.read_text().splitlines()) > MOST_LINES
        assert is_long == (inside in READ_WHOLE), path
        assert ast.get_docstring(tree_of(path)), f"{path} has no docstring"


def test_nothing_is_unpickled() -> None:
    for path in sources():
        for node in nodes_of(path):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert not {"pickle", "marshal", "shelve", "dill"} & set(names), path


TENSORS = {
    "arange",
    "empty",
    "full",
    "linspace",
    "ones",
    "rand",
    "randint",
    "randn",
    "tensor",
    "zeros",
}
BESIDE_A_PROGRAM = {"repair", "tensors", "diff"}


def test_tensors_of_ours_ignore_the_default_device_of_a_program() -> None:
    """A program may have called `torch.set_default_device`."""
    for path in sources():
        if path.relative_to(PACKAGE).parts[0] not in BESIDE_A_PROGRAM:
            continue
        for node in nodes_of(path):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            made = getattr(node.func.value, "id", "") == "torch" and node.func.attr in TENSORS
            named = "device" in {keyword.arg for keyword in node.keywords}
            assert named or not made, f"{path}:{node.lineno}"
