"""A sweep's run of every shape, made without torch."""

from __future__ import annotations

from builders import ROOT, event
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import Body, JobCause, JobEnded, Machine
from compilescope.record.header import RunHeader
from compilescope.record.run import Run

BREAK = JobCause(
    kind="break",
    rule="GB0170",
    fingerprint="a" * 16,
    title="Data-dependent branching",
    message="The branch depends on a tensor's value.",
    file=f"{ROOT}/branching.py",
    line=8,
    function="forward",
    source="        if h.mean() > 0:",
    fix="where-for-if",
    fix_title="torch.where instead of if",
)
SIZES = JobCause(
    kind="recompile",
    rule="recompile/size-change",
    fingerprint="b" * 16,
    title="forward recompiles: x.size()[0]",
    message="Its first size changed from 2 to 3.",
    file=f"{ROOT}/sizes.py",
    line=12,
    function="forward",
    count=2,
    seconds=0.4,
)
ECHO = JobCause(
    kind="break", rule="GB0033", fingerprint="c" * 16, title="Graph break", level="note"
)


def job(name: str, state: str = "ok", **fields: object) -> JobEnded:
    figures: dict[str, object] = {"machine": "here", "torch": "2.13.0", "seconds": 2.5}
    if state == "ok":
        figures |= {"graphs": 1, "breaks": 0, "recompiles": 0, "eager": 0, "failures": 0}
        figures |= {"compile_seconds": 0.2, "overhead_seconds": 0.1}
    return JobEnded(name=name, state=state, **figures | fields)  # type: ignore[arg-type]


JOBS = (
    job("clean"),
    job("branching", causes=(BREAK, ECHO), breaks=2, graphs=3, eager=1, compile_seconds=1.5),
    job("also-branching", causes=(BREAK, SIZES), breaks=1, recompiles=2, kerneldiff="pass"),
    job("no-torch", graphs=0, reason="Nothing was compiled.", compile_seconds=None),
    job("wrong", "failed", reason="ValueError: no such file 'a' (wrong.py:3)"),
    job("also-wrong", "failed", reason="ValueError: no such file 'b' (also-wrong.py:3)"),
    job("killed", "crashed", reason="Terminated by SIGSEGV.", causes=(SIZES,), recompiles=1),
    job("hanging", "timeout", reason="Still running after 5 s.", speedup=1.25),
    job("greedy", "memory", reason="Used more than 2.0 GB.", fixed="partly"),
    job("unknown", "unbuilt", reason="Needs the package detectron2."),
    job("gone", "lost", reason="Its machine died 3 times.", attempts=3, machine="there"),
    job("waiting", "cancelled"),
)
MACHINES = (
    Machine(name="here", cpu="A CPU", cores=2, torch="2.13.0", python="3.11.7"),
    Machine(name="there", cores=64, accelerators=("H200",), problem="It has no torch."),
)


def sweep_run(*jobs: JobEnded, name: str = "abc123-sweep", machines: tuple = MACHINES) -> Run:
    """Of these jobs, else of one in every state and more."""
    bodies: list[Body] = [*machines, *(jobs or JOBS)]
    header = RunHeader(
        run=name,
        tool="0.1.0",
        command=("sweep", "programs"),
        root=ROOT,
        host="here",
        exit_status=1,
        ended_ns=10**9,
    )
    events = [event(body, number=number) for number, body in enumerate(bodies)]
    return Run(header, events, MemoryArtifacts())


def hostile_sweep(words: str) -> Run:
    """Names that would steer a browser, a terminal or a document if anything let them."""
    cause = JobCause(
        kind="break",
        rule=words,
        fingerprint="d" * 16,
        title=words,
        message=words,
        file=f"{ROOT}/{words}.py",
        line=3,
        function=words,
        source=words,
        fix=words,
        fix_title=words,
    )
    jobs = (
        job(words, causes=(cause,), breaks=1, machine=words, reason=words),
        job(f"{words} again", "failed", reason=words, machine=words),
    )
    machine = Machine(name=words, cpu=words, accelerators=(words,), torch=words, problem=words)
    return sweep_run(*jobs, machines=(machine,))
