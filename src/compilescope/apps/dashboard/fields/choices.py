"""What forms offer to choose from, found without importing torch or transformers."""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from compilescope.backends.device_files import FOLDER as _DEVICES
from compilescope.base.package import PACKAGE

_MODELS = Path(PACKAGE, "measure", "bench", "models")
_FAMILY_FILES = ("auto_mappings.py", "configuration_auto.py")
"""Where transformers lists its families: the first since 5.0."""
_FAMILIES = "CONFIG_MAPPING_NAMES"
_USUAL_FAMILIES = ("bert", "gpt2", "llama", "vit", "t5", "mamba", "resnet", "whisper", "qwen3")
_BACKENDS = ("inductor", "eager", "aot_eager", "aot_eager_decomp_partition", "cudagraphs")


@dataclass(frozen=True)
class Option:
    """One value that a form offers."""

    value: str
    label: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        return self.label or self.value


@functools.cache
def backends() -> tuple[Option, ...]:
    """Torch's own that most people use, then those of installed packages."""
    plugged = sorted({entry.name for entry in entry_points(group="torch_dynamo_backends")})
    return tuple(map(Option, (*_BACKENDS, *(name for name in plugged if name not in _BACKENDS))))


def devices() -> tuple[Option, ...]:
    """The devices that are shipped."""
    return tuple(Option(path.stem) for path in sorted(_DEVICES.glob("*.toml")))


@functools.cache
def bench_models() -> tuple[Option, ...]:
    """Those of `compilescope bench --list`."""
    ours = [_bench_model(path) for path in sorted(_MODELS.glob("[!_]*.py"))]
    names = {option.value for option in ours if option is not None}
    plugged = sorted({entry.name for entry in entry_points(group="compilescope.models")} - names)
    return (
        *(option for option in ours if option is not None),
        *(Option(name, note="From a plugin.") for name in plugged),
    )


def _bench_model(path: Path) -> Option | None:
    """What its `MODEL = Model(name=..., about=...)` says."""
    for call in _assigned(path, "MODEL"):
        if isinstance(call, ast.Call):
            said = {
                keyword.arg: keyword.value.value
                for keyword in call.keywords
                if isinstance(keyword.value, ast.Constant)
            }
            if isinstance(said.get("name"), str):
                title, about = said.get("title") or said["name"], said.get("about") or ""
                return Option(str(said["name"]), str(title), str(about))
    return None


@functools.cache
def families() -> tuple[Option, ...]:
    """Model families of the installed transformers, the best known first; empty: not installed."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        return ()
    auto = Path(spec.origin).parent / "models" / "auto"
    found: set[str] = set()
    for name in _FAMILY_FILES:
        for value in _assigned(auto / name, _FAMILIES):
            found.update(_keys(value))
    usual = [name for name in _USUAL_FAMILIES if name in found]
    return tuple(map(Option, (*usual, *sorted(found - set(usual)))))


def _keys(value: ast.expr) -> Iterator[str]:
    """Of a dict, or of a list of pairs, wherever in the expression it is written."""
    for node in ast.walk(value):
        firsts: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            firsts = list(node.keys)
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
            firsts = [node.elts[0]]
        for first in firsts:
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _assigned(path: Path, name: str) -> Iterator[ast.expr]:
    """The values that a module gives this name, as they are written."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        value = getattr(node, "value", None)
        targets = [*getattr(node, "targets", ()), getattr(node, "target", None)]
        if isinstance(node, ast.Expr) and isinstance(value, ast.Call):
            # NAME.update({...})
            targets = [getattr(value.func, "value", None)]
        if value is not None and any(
            isinstance(target, ast.Name) and target.id == name for target in targets
        ):
            yield value


def missing(packages: tuple[tuple[str, str], ...]) -> tuple[str, str] | None:
    """The first package that is not installed, and the extra that brings it."""
    return next((each for each in packages if importlib.util.find_spec(each[0]) is None), None)
