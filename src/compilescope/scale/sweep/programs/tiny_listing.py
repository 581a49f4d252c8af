"""The model classes of `transformers`, found in its sources without importing them.

Importing every modeling file takes minutes; reading their `class` lines takes a second.
"""

import fnmatch
import re
from pathlib import Path
from typing import NamedTuple

import transformers

CLASS = re.compile(r"^class (\w+)\(([^)]*)\)(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
FORWARD = re.compile(r"^    def forward\(", re.MULTILINE)
NO_FORWARD = {"GenerationMixin", "BackboneMixin", "ABC"}
OTHER_FRAMEWORKS = ("modeling_tf_", "modeling_flax_")


class Source(NamedTuple):
    """What the text of a class says."""

    bases: list[str]
    forward: bool


def model_classes() -> list[dict]:
    """Each concrete model class once, as {"name", "family"}, by family and name."""
    classes_of: dict[str, dict[str, Source]] = {}
    found = []
    for name, module in transformers._class_to_module.items():
        if not _modeling(module) or _is_base(name):
            continue
        if module not in classes_of:
            classes_of[module] = _classes_in(module)
        if _is_concrete(name, classes_of[module]):
            found.append({"name": name, "family": module.split(".")[-2]})
    return sorted(found, key=lambda entry: (entry["family"], entry["name"]))


def matching(pattern: str) -> list[dict]:
    """`all`, a family, or globs on class names, separated by commas."""
    wanted = [part.strip() for part in pattern.split(",") if part.strip()]
    return [
        entry
        for entry in model_classes()
        if any(
            part in ("all", entry["family"]) or fnmatch.fnmatchcase(entry["name"], part)
            for part in wanted
        )
    ]


def _modeling(module: str) -> bool:
    last = module.rpartition(".")[2]
    return last.startswith("modeling_") and not last.startswith(OTHER_FRAMEWORKS)


def _is_base(name: str) -> bool:
    return name.lower().endswith("pretrainedmodel")


def _classes_in(module: str) -> dict[str, Source]:
    path = Path(transformers.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return {}
    return {
        name: Source(
            [base.strip().rpartition(".")[2] for base in bases.split(",")],
            FORWARD.search(body) is not None,
        )
        for name, bases, body in CLASS.findall(text)
    }


def _is_concrete(name: str, classes: dict[str, Source]) -> bool:
    """A model with a forward, its own or that of a base, as far as its file goes."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += classes[each].bases if each in classes else []
    # A base from elsewhere, such as GenericForSequenceClassification, brings its forward along.
    elsewhere = {each for each in seen - set(classes) if not _is_base(each)} - NO_FORWARD
    forward = any(classes[each].forward for each in seen & set(classes))
    return any(_is_base(each) for each in seen) and (forward or bool(elsewhere))
