"""Does a search find what makes a step faster? Sleeps are planted, and candidates take them away.

    python benchmarks/planted_tune.py

The bar: both are verified and kept, the step gets at least twice as fast, the script with both is
verified by itself, and what is slower is rejected. On a machine that is busy it may be missed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from compilescope.apps.cli.commands.tune.output import TuneRequest, deliver
from compilescope.change.fixes.patch import Patch
from compilescope.change.repair.delivery.emitter import plan_script
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.search import tune
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.source.refusals import Refused

PROGRAM = """
import time
import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="eager")
for epoch in range(2):
    for step in range(60):
        x = torch.randn(4, 8)
        time.sleep(0.03)  # one
        time.sleep(0.02)  # two
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
print("done")
"""
LEAST = 2.0


def replacing(name: str, old: str, new: str) -> TuneCandidate:
    def propose(tuned: TunedProgram) -> Patch:
        text = tuned.program.text(tuned.program.main)
        if old not in text:
            raise Refused("there is no such text")
        return Patch({tuned.program.main: text.replace(old, new)})

    return TuneCandidate(id=name, title=name, price="", propose=propose)


CANDIDATES = (
    replacing("first", "time.sleep(0.03)  # one", "pass"),
    replacing("second", "time.sleep(0.02)  # two", "pass"),
    replacing("slower", "# two", "; time.sleep(0.02)"),
)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "train.py"
        program.write_text(PROGRAM)
        target = Target("script", (str(program),))
        result = tune(target, TuneOptions(jobs=3), CANDIDATES)
        for each in result.attempts:
            print(f"{each.candidate:8} {each.verdict:10} {each.reason}")
        kept = [each.candidate for each in result.attempts if each.kept]
        slower = next(each for each in result.attempts if each.candidate == "slower")
        speedup = result.outcome.speedup or 0.0
        print(f"kept {kept}, {speedup:.2f}x")
        if kept != ["first", "second"] or speedup < LEAST or slower.verdict != "rejected":
            return 1
        plan = plan_script(target, None)
        asked = TuneRequest(target, TuneOptions(), str(program), False, False, plan)
        handed = deliver(asked, result)
        print(f"the script: {handed.proof.verdict if handed.proof else handed.problem}")
        return 0 if handed.proof is not None and handed.proof.verdict == "verified" else 1


if __name__ == "__main__":
    sys.exit(main())
