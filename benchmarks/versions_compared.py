"""One torch against another over the zoo and model families, for the page versions-compared.md.

    python benchmarks/versions_compared.py capture FOLDER        # in the environment of each torch
    python benchmarks/versions_compared.py page FOLDER_A FOLDER_B

`capture` runs each program of the zoo, and each model family (needs the extra `models`), under
capture and keeps a run of it. `page` compares the runs of each pair as `compilescope compare` does,
and writes the page. With `--zoo`, `capture` leaves the families out.
"""

from __future__ import annotations

import contextlib
import io
import logging
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "tests"))
PAGE = HERE / "docs" / "reference" / "versions-compared.md"


def capture(folder: Path, *, families: bool) -> None:
    import torch

    import compilescope

    logging.getLogger("torch").setLevel(logging.CRITICAL)
    for name, call in programs(families=families):
        torch._dynamo.reset()
        torch.manual_seed(0)
        quiet = io.StringIO()
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
            compilescope.capture(dir=folder / name),
        ):
            warnings.simplefilter("ignore")
            # What a program raises is part of what it does.
            with contextlib.suppress(Exception):
                call()
        print(name, flush=True)


def programs(*, families: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    from zoo.truth import all_programs

    for path in all_programs():
        yield f"zoo-{path.stem}", partial(runpy.run_path, str(path), run_name="__main__")
    if families:
        from models.families import FAMILIES

        for name, build in FAMILIES.items():
            yield f"model-{name}", partial(_run, build)


def _run(build: Callable[[], tuple[Any, Callable[[Any], Any]]]) -> None:
    import torch

    model, call = build()
    call(torch.compile(model, backend="eager"))


def page(before: Path, after: Path) -> str:
    from compilescope.knowledge.analysis.comparison import RunComparison
    from compilescope.record.home import find_run
    from compilescope.report.comparison import compare_runs, read_side

    compared: dict[str, RunComparison] = {}
    for name in sorted(each.name for each in before.iterdir() if (after / each.name).exists()):
        sides = [read_side(find_run(folder / name, None)) for folder in (before, after)]
        if any(side.run.live or side.run.cut_short for side in sides):
            continue
        seen = compare_runs(sides[0], sides[1]).seen
        assert isinstance(seen, RunComparison)
        compared[name] = seen
    old, new = (_release(each) for each in next(iter(compared.values())).torch)
    lines = [
        f"# torch {old} and {new} compared",
        "",
        f"{len(compared)} programs, each captured under torch {old} and under {new}, then compared",
        "as `compilescope compare` compares two runs. A cause is a graph break, a function left to",
        "eager mode, a recompile or a failure. `benchmarks/versions_compared.py` writes this page.",
        "",
        "To compare your own program, capture it in both environments into one folder:",
        "",
        "```bash",
        "old/bin/compilescope run --dir runs train.py",
        "new/bin/compilescope run --dir runs train.py",
        "compilescope runs --dir runs",
        "compilescope compare --dir runs RUN_A RUN_B",
        "```",
        "",
        "The summary then says what is better and worse under the newer torch. A line that breaks",
        'under both, but by another type, is "named otherwise": neither gone nor new.',
        "",
    ]
    for prefix, title in (("zoo-", "The zoo"), ("model-", "Model families")):
        part = {name: seen for name, seen in compared.items() if name.startswith(prefix)}
        if part:
            lines += [f"## {title}", "", *_part(part, prefix, old, new), ""]
    return "\n".join(lines)


_FIGURES = (
    "graphs",
    "graph breaks",
    "functions run eagerly",
    "recompiles",
    "failures",
    "guards",
)


def _part(part: dict[str, Any], prefix: str, old: str, new: str) -> Iterator[str]:
    yield f"| {len(part)} programs together | {old} | {new} |"
    yield "|---|---|---|"
    for figure in _FIGURES:
        sums = [
            sum(getattr(each, side) or 0 for seen in part.values() for each in seen.figures
                if each.name == figure)
            for side in ("before", "after")
        ]  # fmt: skip
        yield f"| {figure} | {sums[0]:g} | {sums[1]:g} |"
    differing = {name: seen for name, seen in part.items() if not seen.equal}
    yield ""
    yield f"Same causes under both: {len(part) - len(differing)} of {len(part)} programs."
    if not differing:
        return
    yield ""
    yield "| program | gone | new | named otherwise | count changed | figures |"
    yield "|---|---|---|---|---|---|"
    for name, seen in differing.items():
        cells = [
            f"`{name.removeprefix(prefix)}`",
            _causes(seen.gone),
            _causes(seen.new),
            _causes([pair.after for pair in (*seen.retold, *seen.moved)]),
            _causes([pair.after for pair in seen.changed]),
            "; ".join(
                f"{each.name} {each.before:g} to {each.after:g}"
                for each in seen.figures
                if each.name in _FIGURES and each.before != each.after
                if each.before is not None and each.after is not None
            ),
        ]
        yield f"| {' | '.join(cells)} |"


def _causes(found: Any) -> str:
    return "; ".join(f"{each.kind} {each.rule_id}" for each in found)


def _release(torch: str | None) -> str:
    return (torch or "?").partition("+")[0]


def main() -> None:
    match sys.argv[1:]:
        case ["capture", folder, *options] if set(options) <= {"--zoo"}:
            capture(Path(folder), families="--zoo" not in options)
        case ["page", before, after]:
            PAGE.write_text(page(Path(before), Path(after)), encoding="utf-8")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
