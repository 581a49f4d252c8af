"""The models of benchmarks: their sizes, their names, a step of each, and users' own."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.measure.bench import model  # noqa: E402
from compilescope.measure.bench.built import Built, class_loss, squares_loss  # noqa: E402
from compilescope.measure.bench.model import (  # noqa: E402
    Model,
    all_models,
    count_parameters,
    find_model,
    prepared,
    unavailable,
)
from compilescope.measure.bench.models.mamba import scan  # noqa: E402
from compilescope.measure.bench.protocol import Spec  # noqa: E402

pytestmark = pytest.mark.torch
MODELS = [model for model in all_models() if model.parameters]
OWN = """
import torch
def build(batch=3, small=False):
    "A linear layer."
    return torch.nn.Linear(2 if small else 4, 1), (torch.randn(batch, 2 if small else 4),)
def fixed():
    return torch.nn.Linear(4, 2), torch.ones(5, 4), {}
def named():
    return torch.nn.Linear(4, 2), (), {"input": torch.ones(6, 4)}
def function():
    return torch.relu, (torch.ones(5),)
def nothing():
    return None
def failing():
    raise KeyError("weights")
value = 3
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    file = tmp_path / "my_own_models.py"
    file.write_text(OWN)
    return str(file)


def built(model: Model, *, small: bool = True, batch: int = 2) -> Built:
    reason = unavailable(model)
    if reason:
        pytest.skip(reason)
    return model.build(small, batch)


def step(**given: Any) -> Any:
    return prepared(Spec(**given)).step()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_has_the_parameters_it_says(model: Model) -> None:
    with torch.device("meta"):
        assert count_parameters(built(model, small=False).model) == model.parameters
        assert count_parameters(built(model, small=True).model) < 2_000_000


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_small_form_runs_and_trains(model: Model) -> None:
    made = built(model)
    assert not made.model.training
    with torch.no_grad():
        output = made.model(*made.args, **made.kwargs)
    assert made.loss is not None and made.loss(output).isfinite()
    ready = prepared(Spec(model=model.name, mode="training", small=True))
    before = [parameter.detach().clone() for parameter in ready.model.parameters()]
    assert ready.step().isfinite()
    changed = [
        not torch.equal(old, new) for old, new in zip(before, ready.model.parameters(), strict=True)
    ]
    assert sum(changed) > len(changed) / 2
    assert all(parameter.isfinite().all() for parameter in ready.model.parameters())


def test_known_families_are_there() -> None:
    assert {"bert", "resnet", "mamba", "llama", "vit", "unet", "gpt2"} <= {m.name for m in MODELS}
    words = [word for model in MODELS for word in (model.name, *model.aliases)]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("asked", "found"),
    [("resnet18", "resnet"), ("bert-base", "bert"), ("GPT-2", "gpt2"), ("u_net", "unet")],
)
def test_aliases(asked: str, found: str) -> None:
    assert find_model(asked).name == found


def test_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(ToolError, match="no model named 'resnt'") as raised:
        find_model("resnt")
    assert "resnet" in raised.value.hint
    with pytest.raises(ToolError) as raised:
        find_model("zzz")
    assert "mamba" in raised.value.hint


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("decay", [1e-4, 0.1, 3.0, 100.0])
def test_scan_is_the_recurrence(length: int, decay: float) -> None:
    torch.manual_seed(0)
    rates = -torch.rand(2, 3, length) * decay
    x = torch.randn(2, 3, length, 5)
    into, out_of = torch.randn(2, 1, length, 4), torch.randn(2, 1, length, 4)
    exact = _one_by_one(*(each.double() for each in (rates, x, into, out_of)))
    error = (scan(rates, x, into, out_of) - exact).abs().max() / exact.abs().max()
    assert error < 1e-6


def test_scan_has_finite_gradients() -> None:
    rates = (-torch.rand(1, 2, 100) * 50).requires_grad_()
    parts = [torch.randn(1, 2, 100, 3), torch.randn(1, 1, 100, 4), torch.randn(1, 1, 100, 4)]
    scan(rates, *parts).square().sum().backward()
    assert rates.grad is not None and rates.grad.isfinite().all()


def _one_by_one(rates: Any, x: Any, into: Any, out_of: Any) -> Any:
    state = torch.zeros(*x.shape[:2], into.shape[-1], x.shape[-1], dtype=torch.float64)
    outputs = []
    for time in range(x.shape[2]):
        state = rates[..., time, None, None].exp() * state
        state = state + into[:, :, time, :, None] * x[:, :, time, None, :]
        outputs.append((out_of[:, :, time, None, :] @ state).squeeze(-2))
    return torch.stack(outputs, dim=2)


def test_a_seed_gives_the_same_numbers() -> None:
    one, other = (step(model="mamba", small=True, seed=7) for _ in range(2))
    assert torch.equal(one, other)
    assert not torch.equal(one, step(model="mamba", small=True, seed=8))


def test_dtype_casts_floats_alone() -> None:
    ready = prepared(Spec(model="mamba", small=True, dtype="bfloat16"))
    assert ready.args[0].dtype == torch.int64
    assert ready.step().dtype == torch.bfloat16
    assert step(model="resnet", small=True, dtype="bf16", batch=3).shape[0] == 3


def test_compiled_shares_weights_and_computes_the_same() -> None:
    ready = prepared(Spec(model="mamba", small=True))
    compiled = ready.compiled("aot_eager")
    assert compiled.model is ready.model
    torch.testing.assert_close(compiled.step(), ready.step())
    assert ready.compiled("eager") is ready


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "cuda"}, "No CUDA device"),
        ({"device": "abacus"}, "not a device"),
        ({"dtype": "int8"}, "not a floating-point dtype"),
    ],
)
def test_what_cannot_be(given: dict[str, str], words: str) -> None:
    if given.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ToolError, match=words):
        prepared(Spec(model="resnet", small=True, **given))


def test_missing_operator_of_a_dtype_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "halved.py"
    file.write_text(
        "import torch\ndef build():\n    return (lambda x: torch.linalg.inv(x)), (torch.eye(3),)\n"
    )
    with pytest.raises(ToolError, match="cannot run in float16 on cpu"):
        step(model=f"{file}:build", dtype="float16")


def test_own_file(own: str) -> None:
    model = find_model(f"{own}:build")
    assert model.about == "A linear layer."
    assert prepared(Spec(model=own)).batch == 3
    ready = prepared(Spec(model=own, batch=7, small=True, mode="training"))
    assert (ready.batch, ready.parameters) == (7, 3)
    assert ready.step().isfinite()
    assert prepared(Spec(model=f"{own}:fixed")).batch == 5
    assert prepared(Spec(model=f"{own}:named")).batch == 6
    assert step(model=f"{own}:function").shape == (5,)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": ":fixed", "batch": 2}, "takes no argument 'batch'"),
        ({"model": ":fixed", "small": True}, "takes no argument 'small'"),
        ({"model": ":nothing"}, "returned nothing"),
        ({"model": ":failing"}, "KeyError: 'weights'"),
        ({"model": ":value"}, "is not a function"),
        ({"model": ":biuld"}, "has no 'biuld'"),
        ({"model": ":function", "mode": "training"}, "no parameters to train"),
    ],
)
def test_own_file_that_is_wrong(own: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        prepared(Spec(**{**given, "model": own + given["model"]}))


def test_entry_points(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(own).parent))
    group = model.GROUP
    entries = [
        EntryPoint("tiny", "my_own_models:build", group),
        EntryPoint("broken", "my_absent_package:build", group),
        EntryPoint("bert", "my_own_models:fixed", group),
    ]
    monkeypatch.setattr(model, "entry_points", lambda group: entries)
    found = {model.name: model for model in all_models()}
    assert unavailable(found["tiny"]) == ""
    assert find_model("tiny").build(False, 4).args[0].shape[0] == 4
    assert "my_absent_package" in unavailable(found["broken"])
    assert "already named 'bert'" in unavailable(found["my_own_models:fixed"])
    assert found["bert"].parameters
    with pytest.raises(ToolError, match="my_absent_package"):
        prepared(Spec(model="broken"))


def test_missing_package_names_the_extra() -> None:
    model = Model(name="x", title="X", about="", build=find_model("unet").build, needs=("nowhere",))
    assert 'pip install "compilescope[models]"' in unavailable(model)


def test_losses_take_outputs_of_any_form() -> None:
    output = {"a": torch.full((2,), 3.0), "b": [torch.full((2,), 1.0), torch.tensor([5])]}
    assert squares_loss(output).item() == 5.0
    with pytest.raises(ValueError, match="no floating-point tensor"):
        squares_loss(torch.tensor([1]))
    assert class_loss(torch.zeros(2, 3, 10)).item() == pytest.approx(2.302585)
