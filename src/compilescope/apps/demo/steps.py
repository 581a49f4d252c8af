"""The steps of the tour, in the order in which one takes them."""

from __future__ import annotations

import importlib.util
import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command, as typed in a shell."""

    words: tuple[str, ...]
    """The first is `compilescope` or `python`."""
    expected: int = 0
    """Its exit status, if it does what it should."""
    environment: tuple[tuple[str, str], ...] = ()
    shows: tuple[str, ...] = ()
    """What its output must contain."""
    since: str = ""
    """Its output is shown from the first line that contains this; empty: from the start."""
    lines: int = 48
    """At most this many lines of it are shown."""
    document: bool = False
    """Its stdout is JSON: stderr is kept apart."""

    @property
    def text(self) -> str:
        """To copy into a shell."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment]
        return " ".join([*variables, shlex.join(self.words)])


@dataclass(frozen=True)
class TourStep:
    """One step of the tour: it shows one capability."""

    id: str
    order: int
    title: str
    text: str
    """One or two sentences on what it shows."""
    commands: tuple[Command, ...]
    programs: tuple[str, ...] = ("model.py",)
    """Files from `programs/` that the commands read."""
    after: tuple[str, ...] = ()
    """Steps whose results it reads."""
    modules: tuple[str, ...] = ("torch",)
    """Packages without which it can't run."""
    makes: tuple[str, ...] = ()
    """Files it leaves behind."""

    def missing(self) -> str:
        """Why it can't run here; empty if it can."""
        absent = [name for name in self.modules if importlib.util.find_spec(name) is None]
        return f"{absent[0]} is not installed" if absent else ""


STEPS = (
    TourStep(
        id="capture",
        order=1,
        title="Capture",
        text="Runs a program unmodified and records everything torch.compile does. "
        "On purpose, this model has one graph break, and a counter that causes two recompiles.",
        commands=(
            Command(
                ("compilescope", "run", "model.py"),
                shows=(
                    "4 graphs instead of 1",
                    "Graph breaks 1",
                    "Recompiles 2",
                    "Data-dependent branching",
                ),
            ),
        ),
    ),
    TourStep(
        id="explain",
        order=2,
        title="Explain",
        text="Explains each cause of that run: why it happens, and what to change.",
        commands=(
            Command(
                ("compilescope", "explain", "--site", "model.py:18"),
                shows=("GB0170", "torch.where"),
            ),
        ),
        after=("capture",),
    ),
    TourStep(
        id="fix",
        order=3,
        title="Fix",
        text="Tries patches in fresh processes and keeps those it has verified: the cause is gone, "
        "and the program computes and prints the same. --script writes model_fixed.py.",
        commands=(
            Command(
                ("compilescope", "fix", "model.py", "--script", "--no-time"),
                shows=("2 fixes verified", "graph breaks 1 -> 0"),
            ),
        ),
        makes=("model_fixed.py",),
    ),
    TourStep(
        id="report",
        order=4,
        title="Report",
        text="Writes the latest run as one HTML page: causes, your source, a timeline, every "
        "graph. Markdown, JSON, SARIF and a Perfetto trace work the same way.",
        commands=(Command(("compilescope", "report", "-o", "report.html")),),
        after=("capture",),
        makes=("report.html",),
    ),
    TourStep(
        id="constraints",
        order=5,
        title="Hardware constraints",
        text="Checks every graph against a device described in a TOML file, without the device. "
        "npu-a wants matrix sizes in multiples of 16; the batch here is 8, so the check fails.",
        commands=(
            Command(
                ("compilescope", "preflight", "model.py", "--device", "npu-a"),
                expected=1,
                shows=("multiples of 16",),
            ),
        ),
    ),
    TourStep(
        id="graphs",
        order=6,
        title="FX and AOT graphs",
        text="The same capture from Python, around one training step: the FX graphs of Dynamo, and "
        "the joint, forward and backward graphs of AOTAutograd. graphs.py is 25 lines.",
        commands=(
            Command(
                ("python", "graphs.py"),
                shows=("2 FX graphs", "aot_joint", "aot_forward", "aot_backward"),
            ),
        ),
        programs=("model.py", "graphs.py"),
    ),
    TourStep(
        id="numbers",
        order=7,
        title="KernelDiff",
        text="Compares a backend with eager mode and a float64 run, and names the wrong operation. "
        "The backend `fast_gelu` has a planted bug. The heatmap shows where the errors are.",
        commands=(
            Command(
                (
                    *("compilescope", "diff", "model.py:build"),
                    *("--test-backend", "model.py:fast_gelu", "--localize"),
                ),
                expected=1,
                shows=("FAIL", "wrong operation: torch._C._nn.gelu"),
            ),
            Command(
                ("compilescope", "show", "--all", "--section", "diffs"),
                shows=("where the errors are", "+----"),
                since="where the errors are",
            ),
        ),
    ),
    TourStep(
        id="minify",
        order=8,
        title="Minifier",
        text="Shrinks the graph while the planted bug still shows, and writes a script that needs "
        "only torch. The script exits with 1 while the bug is present.",
        commands=(
            Command(
                (
                    *("compilescope", "minify", "model.py", "--predicate", "diff"),
                    *("--test-backend", "model.py:fast_gelu", "-o", "repro.py"),
                ),
                shows=("Repro, verified in a fresh process: repro.py",),
            ),
            Command(("python", "repro.py"), expected=1, shows=("The bug is present",)),
        ),
        makes=("repro.py",),
    ),
    TourStep(
        id="bench",
        order=9,
        title="Benchmarks",
        text="Measures the model in eager mode and on a backend, in processes that take turns: "
        "latency with a 95 % interval, compile time, and whether the difference is real.",
        commands=(
            Command(
                (
                    *("compilescope", "bench", "--model", "model.py:build"),
                    *("--backend", "eager", "--backend", "aot_eager"),
                    *("--runs", "5", "--processes", "1", "--longer", "20"),
                ),
                shows=("Eager ms", "aot_eager ms", "Speed-up", "KernelDiff"),
                since="compilescope bench ",
                lines=36,
            ),
        ),
        modules=("torch", "numpy", "scipy"),
    ),
    TourStep(
        id="gate",
        order=10,
        title="Gate",
        text="Fails a CI job when a program exceeds its limits. The model fails; with the verified "
        "fixes from before, it passes.",
        commands=(
            Command(
                ("compilescope", "check", "model.py", "--max-breaks", "0"),
                expected=1,
                shows=("FAIL: 1 graph break, at most 0 allowed",),
                lines=14,
            ),
            Command(
                (
                    *("compilescope", "check", "model_fixed.py"),
                    *("--max-breaks", "0", "--max-recompiles", "0"),
                ),
                shows=("PASS",),
            ),
        ),
        after=("fix",),
    ),
    TourStep(
        id="registry",
        order=11,
        title="Registry",
        text="Looks up the graph break in PyTorch's own table. `registry search` finds others, "
        "`registry build` makes a site of them all.",
        commands=(
            Command(
                ("compilescope", "registry", "show", "GB0170"), shows=("Data-dependent branching",)
            ),
        ),
        programs=(),
        modules=(),
    ),
    TourStep(
        id="logs",
        order=12,
        title="Logs",
        text="Reads what PyTorch itself writes with TORCH_TRACE or TORCH_LOGS, for machines where "
        "you can't install anything. It finds the same graph break and the same recompiles.",
        commands=(
            Command(("python", "model.py"), environment=(("TORCH_TRACE", "trace"),)),
            Command(("compilescope", "logs", "trace"), shows=("4 graphs instead of 1",)),
        ),
        makes=("trace",),
    ),
)
