"""Figures of a benchmark as cells of a table, its machine and its settings as lines."""

from __future__ import annotations

from compilescope.knowledge.analysis.benchmarks import Setup, Trial, benchmarks, effect, machines
from compilescope.record.benchmark import Benchmark, Machine
from compilescope.record.byte_counts import shown_bytes
from compilescope.record.run import Run
from compilescope.report.blocks import Span, Style, Words, words
from compilescope.report.places import count

_KERNELDIFF: dict[str, tuple[str, Style]] = {
    "": ("-", "plain"),
    "pass": ("pass", "good"),
    "fail": ("FAIL", "bad"),
    "unknown": ("inconclusive", "warn"),
}
_EFFECTS: dict[str, Style] = {
    "faster": "good",
    "slower": "bad",
    "same": "dim",
    "unknown": "plain",
}


def varying(found: list[Trial]) -> frozenset[str]:
    """What a model's name must say besides, since not all setups share it."""
    names = [name for name in Setup._fields if name not in ("model", "batch")]
    return frozenset(
        name for name in names if len({getattr(each.setup, name) for each in found}) > 1
    ) | ({"batch"} if _several_batches(found) else frozenset())


def _several_batches(found: list[Trial]) -> bool:
    """Of one model: each model has a batch of its own."""
    others = [(*each.setup[:4], each.setup.small) for each in found]
    return len(set(others)) < len(others)


def setup_name(setup: Setup, differs: frozenset[str]) -> str:
    """`bert`, `bert (training, batch 8)`."""
    told = [getattr(setup, name) for name in ("mode", "device", "dtype") if name in differs]
    told += [f"batch {setup.batch}"] if "batch" in differs else []
    told += ["small"] if "small" in differs and setup.small else []
    return f"{setup.model} ({', '.join(told)})" if told else setup.model


TOO_NOISY = "too noisy to tell"


def ms_text(row: Benchmark) -> str:
    """The median with three digits or more, where it says more than the noise in it."""
    if row.noisy_latency:
        return TOO_NOISY
    return _ms(row.latency_ms, row.latency_ms) if row.latency_ms is not None else "-"


def like_median(row: Benchmark, value: float | None) -> str:
    """With as many digits as the median beside it."""
    return _ms(value, row.latency_ms or value) if value is not None else "-"


def interval_text(row: Benchmark) -> str:
    if row.latency_ci_ms is None or row.latency_ms is None:
        return ""
    low, high = row.latency_ci_ms
    return f"[{_ms(low, row.latency_ms)}, {_ms(high, row.latency_ms)}]"


def _ms(value: float, like: float) -> str:
    """As many digits as `like` needs, so that figures side by side agree."""
    return f"{value:.1f}" if like >= 100 else f"{value:.2f}" if like >= 1 else f"{value:.4f}"


def ms_cell(row: Benchmark | None) -> Words:
    if row is not None and row.error and row.latency_ms is None:
        return words(Span("failed", "bad"))
    return words(ms_text(row) if row is not None else "-")


def ratio_text(value: float, low: float, high: float) -> str:
    """`1.42x [1.38, 1.46]`."""
    digits = 1 if value >= 10 else 2
    return f"{value:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"


def speedup_cell(row: Benchmark | None, *, in_words: bool = True) -> Words:
    """`in_words`: an interval that contains 1 is `no difference`."""
    if row is None or row.backend == "eager":
        return words("-")
    if row.too_noisy:
        return words(Span(TOO_NOISY, "warn"))
    if row.speedup is None:
        return words("-")
    if row.speedup_ci is None:
        return words(f"{row.speedup:.2f}x")
    found = effect(row.speedup_ci)
    same = in_words and found == "same"
    text = "no difference" if same else ratio_text(row.speedup, *row.speedup_ci)
    return words(Span(text, _EFFECTS[found]))


def kerneldiff_cell(row: Benchmark | None) -> Words:
    return words(Span(*_KERNELDIFF[row.kerneldiff if row is not None else ""]))


def compile_cell(row: Benchmark | None) -> Words:
    """`12.3 / 3.1`: with empty caches, then with those it left."""
    if row is None or (row.compile_seconds is None and row.warm_compile_seconds is None):
        return words("-")
    both = (row.compile_seconds, row.warm_compile_seconds)
    return words(" / ".join(f"{each:.1f}" if each is not None else "-" for each in both))


def seconds_cell(value: float | None) -> Words:
    return words(f"{value:.2f} s" if value is not None else "-")


def number_cell(value: int | None) -> Words:
    return words(str(value) if value is not None else "-")


def samples_cell(row: Benchmark) -> Words:
    if row.throughput is None or row.noisy_latency:
        return words("-")
    return words(f"{row.throughput:.0f}" if row.throughput >= 100 else f"{row.throughput:.2f}")


def bytes_cell(row: Benchmark) -> Words:
    return words(shown_bytes(row.peak_bytes) if row.peak_bytes is not None else "-")


def machine_lines(run: Run) -> list[str]:
    found = machines(run)
    named = len(found) > 1
    return [machine_line(each, named=named) for each in found]


def machine_line(machine: Machine, *, named: bool = False) -> str:
    """`AMD EPYC 7B13, 2 cores, 2 threads · NVIDIA H200 · torch 2.13.0 · Python 3.11.7`."""
    told = [machine.cpu] if machine.cpu else []
    told += [count(machine.cores, "core")] if machine.cores is not None else []
    told += [count(machine.threads, "thread")] if machine.threads is not None else []
    told += [f"{shown_bytes(machine.memory_bytes)} memory"] if machine.memory_bytes else []
    parts = [machine.name] if named and machine.name else []
    parts += [", ".join(told)] if told else []
    parts += [", ".join(machine.accelerators)] if machine.accelerators else []
    parts.append(f"torch {machine.torch}" if machine.torch else "no torch")
    parts += [f"Python {machine.python}"] if machine.python else []
    parts += [f"{name} {version}" for name, version in machine.packages.items()]
    line = " · ".join(parts)
    return f"{line}. {machine.problem}" if machine.problem else line


def settings_line(run: Run) -> str:
    """`inference, float32, on cpu · small models · batch 8 · 2 processes x 10 runs`."""
    rows = benchmarks(run)

    def shared(name: str) -> list[str]:
        values = list(dict.fromkeys(str(getattr(row, name)) for row in rows))
        return [" and ".join(values)] if all(values) else []

    parts = [", ".join([*shared("mode"), *shared("dtype"), *(f"on {d}" for d in shared("device"))])]
    modes = {row.compile_mode for row in rows if row.compile_mode}
    parts += [f"mode={mode!r}" for mode in sorted(modes)]
    if any(row.small for row in rows):
        parts.append("small models" if all(row.small for row in rows) else "some models small")
    batches = {row.batch for row in rows}
    parts.append(f"batch {batches.pop()}" if len(batches) == 1 else "a batch size per model")
    parts.append(_runs(rows))
    constraints = sorted({row.constraints for row in rows if row.constraints})
    parts += [f"constraints of {name}" for name in constraints]
    return " · ".join(part for part in parts if part)


def _runs(rows: list[Benchmark]) -> str:
    """Of the rows that have them; `up to` where some have fewer."""
    shapes = [(len(row.runs_ms), max(map(len, row.runs_ms))) for row in rows if row.runs_ms]
    if not shapes:
        return ""
    processes, runs = max(shapes)
    least = "up to " if len(set(shapes)) > 1 else ""
    if processes == 1:
        return f"{least}{count(runs, 'run')}"
    return f"{least}{processes} processes x {count(runs, 'run')}"
