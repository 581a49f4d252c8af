"""Polygraphy: the model as ONNX in ONNX Runtime, against the numbers that the compiled one gave.

`polygraphy run model.onnx --onnxrt --load-inputs --load-outputs` is its documented way to compare
with results of something it cannot run itself, as a backend of torch.compile.
"""

import re
import sys
from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program

_EXPORT = """
import torch, {name}
from polygraphy.comparator import RunResults
from polygraphy.json import save_json
model, args = {name}.build()
torch.onnx.export(model, args, "model.onnx", input_names=["x"], output_names=["out"], dynamo=True)
backend = getattr({name}, "quick_gelu", "inductor")
with torch.no_grad():
    out = torch.compile(model, backend=backend)(*args)
save_json([{{"x": args[0].numpy()}}], "inputs.json")
results = RunResults()
results.add([{{"out": out.numpy()}}], runner_name="torch.compile")
results.save("outputs.json")
"""


def localise(program: Program, folder: Path) -> Answer:
    copied(program, folder)
    ran = asked(python("-c", _EXPORT.format(name=program.name)), folder)
    command = [str(Path(sys.executable).with_name("polygraphy")), "run", "model.onnx", "--onnxrt"]
    saved = ["--load-inputs", "inputs.json", "--load-outputs", "outputs.json"]
    answer = asked([*command, *saved], folder)
    answer.cpu_s += ran.cpu_s
    if found := re.search(r".*FAILED \| .*", answer.text):
        answer.verdict = found[0]
    return answer


TOOL = Tool(
    "Polygraphy",
    localise=localise,
    packages=("polygraphy", "onnx", "onnxruntime", "onnxscript"),
    unmodified=False,
    not_its_job=frozenset({"wrong line", "part"}),
)
