"""Which fields of a compiled model's results a program reads, and where that cannot be seen."""

from __future__ import annotations

import pytest

from compilescope.change.fixes.compilation.results import check_only_given, fields_read
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

HEAD = """import torch
from models import Config, Model

config = Config(width=4)
model = Model(config).to("cpu")
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def _module(text: str, name: str = "train.py") -> SourceModule:
    return SourceModule(f"/program/{name}", text)


def _call(module: SourceModule, name: str) -> cst.Call:
    return next(
        node
        for node in module.walk()
        if isinstance(node, cst.Call) and module.code(node.func) == name
    )


def _read(lines: str, *others: SourceModule) -> frozenset[str]:
    module = _module(f"{HEAD}\n{lines}\n")
    return fields_read([module, *others], module, _call(module, "compiled"))


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        ("loss = compiled(x).loss", {"loss"}),
        ("loss = compiled(x)['loss']", {"loss"}),
        ("out = compiled(x)\nout.loss.backward()\nprint(out.logits)", {"loss", "logits"}),
        ("def step(x):\n    out = compiled(x)\n    return out.loss", {"loss"}),
        ("compiled.train()\nloss = compiled(x).loss\nprint(model(x).logits)", {"loss", "logits"}),
        ("compiled(x)", set()),
    ],
)
def test_fields_are_listed(lines: str, fields: set[str]) -> None:
    assert _read(lines) == fields


@pytest.mark.parametrize(
    "lines",
    [
        "out = compiled(x)\nkept.append(out)",
        "out = compiled(x)\nfor each in out.values():\n    print(each)",
        "loss, logits = compiled(x)",
        "loss = compiled(x)[0]",
        "name = 'loss'\nloss = compiled(x)[name]",
        "loss = getattr(compiled(x), 'loss')",
        "loss = compiled(x).loss\nmodel.generate(x)",
        "loss = compiled(x).loss\ntrain(model)",
        "loss = compiled(x).loss\nself.model = model",
        "loss = compiled(x).loss\nmodel.save_pretrained('here')",
        "loss = compiled(x).loss\nself.model = torch.compile(model)",
        "def step(compiled, x):\n    return compiled(x).loss",
    ],
)
def test_what_cannot_be_followed_is_refused(lines: str) -> None:
    with pytest.raises(Refused):
        _read(lines)


def test_another_file_that_takes_the_model_is_refused() -> None:
    assert _read("compiled(x).loss", _module("import torch\n", "tools.py")) == {"loss"}
    with pytest.raises(Refused, match="another file"):
        _read("compiled(x).loss", _module("from train import compiled\n", "tools.py"))


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        ("model = Model(config)", True),
        ("model = Model(config)\nx = torch.zeros(config.width)", True),
        ("model = Model(config)\nconfig.save('here')", False),
        ("model = Model(config)\nprint(config)", False),
        ("models = [make(config)]", False),
    ],
)
def test_a_config_that_only_makes_models(lines: str, given: bool) -> None:
    module = _module(f"from models import Config, Model\nconfig = Config()\n{lines}\n")
    if given:
        check_only_given(module, _call(module, "Config"))
        return
    with pytest.raises(Refused):
        check_only_given(module, _call(module, "Config"))
