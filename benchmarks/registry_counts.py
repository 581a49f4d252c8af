"""How many models and programs meet each graph break: the counts behind the registry's home page.

    python benchmarks/registry_counts.py [--sample 56] [--write]

Runs the programs of the zoo and of `examples/`, then model classes of transformers drawn at random
with a fixed seed, built tiny as `compilescope sweep --transformers` builds them, compiled with the
backend "eager" and run twice. A capture of each says which graph breaks it met. Each
runs in a child of one warm process, so that importing transformers is paid for once. `--write`
replaces `registry/met.json`. Needs the extra `models` and Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import random
import resource
import runpy
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch._dynamo

import compilescope.knowledge.registry
import compilescope.scale.sweep.programs as sweep_programs
from compilescope import capture

HERE = Path(__file__).resolve().parent.parent
MET = Path(compilescope.knowledge.registry.__file__).with_name("met.json")
CPU_SECONDS = 90
WALL_SECONDS = 600
NAMED = 5
"""Models that the file names for an id."""


def main() -> None:
    asked = _arguments()
    kept = json.loads(asked.state.read_text()) if asked.state and asked.state.exists() else {}
    transformers = _preloaded()
    found = {"models": kept.get("models", {}), "programs": kept.get("programs", {})}
    for kind, name, work in _jobs(asked):
        if name not in found[kind]:
            found[kind][name] = _in_child(work)
            print(kind, name, found[kind][name], flush=True)
            if asked.state:
                asked.state.write_text(json.dumps(found))
    value = _counted(found, transformers)
    text = _text(value)
    if asked.write:
        MET.write_text(text, encoding="utf-8")
    print(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=56, help="model classes to draw")
    parser.add_argument("--write", action="store_true", help=f"replace {MET.name}")
    parser.add_argument("--state", type=Path, help="keep what is done there, and continue from it")
    return parser.parse_args()


def _preloaded() -> str:
    """Import what every child needs; gives the version of transformers."""
    warnings.filterwarnings("ignore")
    import transformers
    import transformers.modeling_utils

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    torch._dynamo.reset()
    return str(transformers.__version__)


def _jobs(asked: argparse.Namespace) -> Iterator[tuple[str, str, Callable[[], None]]]:
    program = _model_program()
    import tiny_listing

    for folder in (HERE / "tests" / "zoo" / "programs", HERE / "examples"):
        for path in sorted(folder.glob("*.py")):
            yield "programs", f"{folder.name}/{path.name}", partial(_run_program, path)
    classes = [each["name"] for each in tiny_listing.matching("all")]
    random.Random(0).shuffle(classes)
    for name in classes[: asked.sample]:
        yield "models", name, partial(_run_model, program, name)


def _model_program() -> ModuleType:
    path = Path(next(iter(sweep_programs.__path__))) / "transformers_model.py"
    spec = importlib.util.spec_from_file_location("transformers_model", path)
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def _run_model(program: ModuleType, name: str) -> None:
    options = {"model": name, "backend": "eager", "batch": 2, "seq": 16, "shapes": 1}
    program._run(SimpleNamespace(**options, train=False, device="cpu"))


def _run_program(path: Path) -> None:
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    os.chdir(path.parent)
    runpy.run_path(str(path), run_name="__main__")


def _in_child(work: Callable[[], None]) -> dict[str, Any]:
    """The ids that Dynamo counted while `work` ran, and how it ended."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        _child(work, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(data) if data else {"end": f"stopped ({status})", "ids": [], "graphs": 0}


def _child(work: Callable[[], None], writer: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    signal.alarm(WALL_SECONDS)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    end = "ok"
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None), capture() as seen:
        try:
            work()
        except SystemExit as leaving:
            end = "ok" if not leaving.code else f"exit {leaving.code}"
        except BaseException as error:
            end = type(error).__name__
    ids = {site.gb_id for site in seen.digest.sites if site.gb_id}
    ids |= {failure.gb_id for failure in seen.digest.failures if failure.gb_id}
    if any(frame.cause == "recompile-limit" for frame in seen.eager_frames):
        ids.add("GB0039")
    graphs = len(seen.graphs)
    with os.fdopen(writer, "wb") as stream:
        stream.write(json.dumps({"end": end, "ids": sorted(ids), "graphs": graphs}).encode())
    os._exit(0)


def _counted(found: dict[str, Any], transformers: str) -> dict[str, Any]:
    ids: dict[str, dict[str, Any]] = {}
    for kind, jobs in found.items():
        counts = Counter(gb_id for job in jobs.values() for gb_id in job["ids"])
        for gb_id, count in counts.items():
            ids.setdefault(gb_id, {"models": 0, "programs": 0})[kind] = count
    for gb_id, each in ids.items():
        each["named"] = [n for n, job in found["models"].items() if gb_id in job["ids"]][:NAMED]
    order = sorted(ids, key=lambda g: (-ids[g]["models"], -ids[g]["programs"], g))
    return {
        "torch": torch.__version__.partition("+")[0],
        "transformers": transformers,
        "drawn": len(found["models"]),
        "models": sum(job["graphs"] > 0 for job in found["models"].values()),
        "programs": sum(job["graphs"] > 0 for job in found["programs"].values()),
        "ids": {gb_id: ids[gb_id] for gb_id in order},
    }


def _text(value: dict[str, Any]) -> str:
    """A line for each id, so that a diff reads well."""
    head = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in value.items() if k != "ids")
    rows = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value["ids"].items()]
    return "{\n" + head + ' "ids": {\n' + ",\n".join(rows) + "\n }\n}\n"


if __name__ == "__main__":
    main()
