"""Steps of whole programs, on the CPU: shares add up to the step, and times of operators are those
of the profiler's own table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.knowledge.profiles.calls import StepPlaces  # noqa: E402
from compilescope.knowledge.profiles.kernel_rows import kernel_rows  # noqa: E402
from compilescope.knowledge.profiles.step import bar_of  # noqa: E402
from compilescope.knowledge.profiles.step_profile import profiles_of  # noqa: E402
from compilescope.knowledge.profiles.trace import STEP, compact, read_stored  # noqa: E402

Step = Callable[[], None]
_BACKEND = "aot_eager"


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def _training(model: Any, loss_of: Callable[[Any], Any]) -> Step:
    compiled = torch.compile(model, backend=_BACKEND)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        loss_of(compiled).backward()
        optimizer.step()

    return step


def _conv_net() -> Step:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * 7 * 7, 10),
    )  # fmt: skip
    x, y = torch.randn(8, 3, 16, 16), torch.randint(10, (8,))
    return _training(model, lambda compiled: nn.functional.cross_entropy(compiled(x), y))


def _data_loader() -> Step:
    data = torch.utils.data.TensorDataset(torch.randn(4096, 64), torch.randn(4096, 1))
    batches = iter(torch.utils.data.DataLoader(data, batch_size=16, shuffle=True))
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))

    def loss(compiled: Any) -> Any:
        x, y = next(batches)
        return (compiled(x) - y).square().mean()

    return _training(model, loss)


def _transformer(name: str) -> Step:
    transformers = pytest.importorskip("transformers")
    sizes: dict[str, Any] = {
        "vocab_size": 99,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    if name == "llama":
        config = transformers.LlamaConfig(**sizes, num_key_value_heads=2)
        model = transformers.LlamaForCausalLM(config)
    else:
        model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
    tokens = torch.randint(99, (2, 16))
    return _training(model, lambda compiled: compiled(input_ids=tokens, labels=tokens).loss)


PROGRAMS = {
    "conv": _conv_net,
    "loader": _data_loader,
    "bert": lambda: _transformer("bert"),
    "llama": lambda: _transformer("llama"),
}


@pytest.mark.parametrize(
    "name",
    ["conv", "loader", *(pytest.param(n, marks=pytest.mark.slow) for n in ("bert", "llama"))],
)
def test_shares_add_up_and_times_are_the_profilers(name: str, tmp_path: Path) -> None:
    step = PROGRAMS[name]()
    with compilescope.capture(profile=3) as seen:
        for _ in range(16):
            step()
    (profile,) = profiles_of(seen.run)
    bar = profile.bar
    assert bar is not None and not seen.digest.faults, profile.told.reason
    assert bar.steps == 3
    assert sum(part.us for part in bar.parts) == pytest.approx(bar.step_us, rel=0.02)
    assert all(part.us >= 0 for part in bar.parts)
    _check_table(step, tmp_path / "trace.json")


def _check_table(step: Step, file: Path) -> None:
    """All that the step calls, by torch's own sums."""
    steps = 4
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for number in range(steps):
            with torch.profiler.record_function(f"{STEP}#{number}"):
                step()
    profiler.export_chrome_trace(str(file))
    trace = read_stored(compact(file, first=0))
    own: dict[str, tuple[float, float]] = {}
    for row in kernel_rows(trace, StepPlaces()):
        calls, us = own.get(row.name, (0.0, 0.0))
        own[row.name] = calls + row.calls * steps, us + row.us * steps
    table = {row.key: row for row in profiler.key_averages()}
    compared = 0
    for name, (calls, us) in own.items():
        theirs = table[name]
        # An operator that others call as well has more in the table than calls of its own.
        assert calls <= theirs.count + 1e-6 and us <= theirs.cpu_time_total + 0.01, name
        if calls == pytest.approx(theirs.count):
            assert us == pytest.approx(theirs.cpu_time_total, abs=0.01), name
            compared += 1
    assert compared >= 3, own
    bar = bar_of(trace)
    assert bar is not None
    assert sum(part.us for part in bar.parts) == pytest.approx(bar.step_us, rel=0.02)
