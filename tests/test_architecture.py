"""The house: its doors, and what may be imported where."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from parsed_source import nodes_of, tree_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "compilescope"
DOORS = {
    "apps",
    "backends",
    "base",
    "change",
    "instrument",
    "knowledge",
    "logs",
    "measure",
    "record",
    "report",
    "scale",
}
ALONE = {"__init__.py", "__main__.py", "py.typed"}
TORCH_FREE = (
    "apps/cli",
    "apps/dashboard",
    "apps/demo",
    "apps/learn",
    "apps/mcp",
    "base",
    "change/fixes",
    "knowledge",
    "logs",
    "record",
    "report",
    "scale",
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
COMMANDS = sorted((PACKAGE / "apps/cli/commands").glob("[a-z]*"))


def sources() -> list[Path]:
    """The tool's own code: examples, lessons and programs are like users', and never imported."""
    data = (
        "knowledge/registry/examples",
        "apps/lessons",
        "apps/demo/programs",
        "scale/sweep/programs",
    )
    theirs = {PACKAGE / folder for folder in data}
    theirs |= {*PACKAGE.glob("*/rules/*/examples"), *PACKAGE.glob("*/fixes/*/examples")}
    return sorted(path for path in PACKAGE.rglob("*.py") if not theirs & set(path.parents))


_ALL_HELPS = """
from compilescope.apps.cli.main import main
for command in {commands!r}:
    sys.argv = ["compilescope", *command, "--help"]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, command
"""


def test_the_package_is_its_doors() -> None:
    # An earlier commit may have left folders with nothing but bytecode.
    found = {path.name for path in PACKAGE.iterdir() if path.is_file() or any(path.rglob("*.py"))}
    assert found == DOORS | ALONE


def test_every_door_says_what_it_is_for() -> None:
    for door in sorted(DOORS):
        text = (PACKAGE / door / "README.md").read_text()
        assert text.startswith(f"# {door}\n") and len(text.splitlines()) <= 24, door
        # What it tells to read is there.
        named = re.findall(r"^\d\. `([\w/.]+)`", text, re.M)
        assert len(named) == 3 and all((PACKAGE / door / name).exists() for name in named), door


def test_no_door_is_called_like_a_public_name() -> None:
    import compilescope

    assert not DOORS & set(compilescope.__all__)


def test_torch_free_packages_import_with_torch_blocked() -> None:
    names = [
        f"compilescope.{'.'.join(path.relative_to(PACKAGE).with_suffix('').parts)}"
        for path in sources()
        if path.relative_to(PACKAGE).as_posix().startswith(TORCH_FREE)
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
        room = path.relative_to(PACKAGE).parts[1:2]
        for node in nodes_of(path):
            modules = []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            private = [m for m in modules if m.startswith("torch.") and "._" in m]
            assert not private or room == ("torchapi",), f"{path}: {private}"


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
        if path.is_relative_to(PACKAGE / "apps/cli") or path.parent.name == "embedded":
            continue
        calls = [
            node
            for node in nodes_of(path)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        ]
        assert not calls, path


MOST_LINES = 560
"""Chosen: some concepts take as many; splitting them at 500 made halves that nobody reads alone."""


def test_files_stay_small_and_say_what_they_own() -> None:
    for path in sources():
        assert len(path.read_text().splitlines()) <= MOST_LINES, path
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
BESIDE_A_PROGRAM = ("change/repair", "measure/tensors", "measure/diff")


def test_tensors_of_ours_ignore_the_default_device_of_a_program() -> None:
    """A program may have called `torch.set_default_device`."""
    for path in sources():
        if not path.relative_to(PACKAGE).as_posix().startswith(BESIDE_A_PROGRAM):
            continue
        for node in nodes_of(path):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            made = getattr(node.func.value, "id", "") == "torch" and node.func.attr in TENSORS
            named = "device" in {keyword.arg for keyword in node.keywords}
            assert named or not made, f"{path}:{node.lineno}"
