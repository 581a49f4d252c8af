"""Steps with one slowness each, at the line that is marked.

    python tests/profiles/planted_steps.py  # records each of them anew, into `cpu/`

What a profile makes of times is tested on these records: how long something takes is up to the
machine. Where something lies is tested on the steps themselves, all in one.
"""

from __future__ import annotations

import gzip
import inspect
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch

HERE = Path(__file__)
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1]))

import compilescope  # noqa: E402
from compilescope.record.bodies import StepsProfiled  # noqa: E402
from compilescope.record.run import Run  # noqa: E402
from profiles.traces import CPU_RECORDED, CpuRecord  # noqa: E402

Model = Callable[[Any], Any]
SIZE = 512
"""Of the records. Chosen: what is planted takes most of the step."""
LARGE = 2048
NAP_S = 0.05


class Planted:
    """Each takes a model, which is called once, and is small in tests."""

    def __init__(self, size: int = SIZE, large: int = LARGE, nap_s: float = NAP_S) -> None:
        self.size, self.nap_s = size, nap_s
        self.large = torch.ones(large, large)
        parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(40)]
        for parameter in parameters:
            parameter.grad = torch.ones(2)
        self.adam = torch.optim.Adam(parameters, foreach=False)

    def float64(self, model: Model) -> None:
        weight = torch.ones(self.size, self.size, dtype=torch.float64)
        x = model(torch.ones(self.size, self.size))
        torch.matmul(x.double(), weight)  #: here

    def copy(self, model: Model) -> None:
        model(self.large.t().contiguous()[:2])  #: here

    def uncompiled(self, model: Model) -> None:
        x = model(torch.ones(self.size, self.size))
        torch.matmul(torch.matmul(torch.matmul(x, x), x), x)  #: here

    def python(self, model: Model) -> None:
        model(torch.ones(2))
        time.sleep(self.nap_s)  #: here

    def data(self, model: Model) -> None:
        for batch in torch.utils.data.DataLoader(SlowData(self.nap_s)):
            model(batch)

    def optimizer(self, model: Model) -> None:
        model(torch.ones(2))
        self.adam.step()

    def scaled(self, model: Model) -> None:
        """Numbers of Python: to torch's profiler they are of float64."""
        x = torch.ones(self.size, self.size, requires_grad=True)
        y = model(x)
        y = torch.mul(y, 2.0)  #: here
        torch.div(y, 3.0).mean().backward()

    def together(self, model: Model) -> None:
        self.float64(model)
        for step in (self.copy, self.uncompiled, self.python, self.data, self.optimizer):
            step(lambda x: x)
        self.scaled(lambda x: x)


class SlowData(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __init__(self, nap_s: float) -> None:
        self._nap_s = nap_s

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        time.sleep(self._nap_s)
        return torch.ones(2)


STEPS = ("float64", "copy", "uncompiled", "python", "data", "optimizer", "scaled")


def marked_line(name: str) -> int:
    lines, first = inspect.getsourcelines(getattr(Planted, name))
    return next(n for n, line in enumerate(lines, first) if line.rstrip().endswith("#: here"))


def profiled(step: Callable[[Model], None]) -> Run:
    torch._dynamo.reset()
    with compilescope.capture(profile=2) as seen:
        model = torch.compile(lambda x: x.relu(), backend="eager")
        for _ in range(14):
            step(model)
    torch._dynamo.reset()
    assert not seen.digest.faults
    return seen.run


def record() -> None:
    CPU_RECORDED.mkdir(exist_ok=True)
    for name in STEPS:
        run = profiled(getattr(Planted(), name))
        ((_, told),) = run.of(StepsProfiled)
        trace, places = (run.artifacts.get(each) or "" for each in (told.trace, told.places))
        kept = CpuRecord(told.step_ns, trace, places.replace(str(HERE), HERE.name))
        file = CPU_RECORDED / f"{name}.json.gz"
        file.write_bytes(gzip.compress(msgspec.json.encode(kept), mtime=0))


if __name__ == "__main__":
    record()
