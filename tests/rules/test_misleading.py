"""Where PyTorch's own reports mislead, ours do not. Each test is one such point, on real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from capabilities import expected
from compilescope.apps.front import Capture
from rules.test_rules import capture

pytestmark = pytest.mark.torch

HEAD = "import torch\n"


def run(text: str, folder: Path) -> Capture:
    return capture(HEAD + text, folder)


def test_counts_are_of_sites_not_of_reports(tmp_path: Path) -> None:
    seen = run(
        """
def inner(x):
    y = x + 1
    print("once")
    return y * 2

def f(x):
    return inner(x) + inner(x * 2)

compiled = torch.compile(f, backend="eager")
for size in (3, 4, 5):
    compiled(torch.ones(size))
""",
        tmp_path,
    ).digest
    assert len(seen.sites) == 1
    assert seen.break_events > 3


def test_a_masked_break_makes_the_count_a_lower_bound(tmp_path: Path) -> None:
    seen = run(
        """
def f(x):
    for i in range(2):
        print(i)
    return x * x.sum().item()

torch.compile(f, backend="eager")(torch.ones(3))
""",
        tmp_path,
    )
    assert [site.rule for site in seen.breaks] == ["print-call"]
    assert seen.digest.hidden_breaks_possible
    assert "at least 1" in seen.summary()


def test_the_root_cause_stands_not_its_wrapper(tmp_path: Path) -> None:
    [site] = run(
        """
def f(x):
    for i in range(2):
        x = x * x.sum().item()
    return x

torch.compile(f, backend="eager")(torch.ones(3))
""",
        tmp_path,
    ).breaks
    assert (site.gb_id, site.wrappers) == ("GB0124", ("graph break in loop",))


def test_reasons_without_a_type_get_one(tmp_path: Path) -> None:
    seen = run(
        """
def f(x):
    n = x.sum().int().item()
    return x[: len(range(n))] * 2

with torch._dynamo.config.patch(capture_scalar_outputs=True):
    try:
        torch.compile(f, backend="eager")(torch.ones(3))
    except Exception:
        pass
""",
        tmp_path,
    )
    found = [*seen.breaks, *seen.failures]
    assert found
    assert all(cause.category not in ("", "unclassified") and cause.remedy for cause in found)


def test_a_frame_in_a_polyfill_is_shown_at_the_users_line(tmp_path: Path) -> None:
    [site] = run(
        """
def f(x):
    kept = list(filter(lambda n: print(n) or n > 1, [1, 2, 3]))
    return x + len(kept)

torch.compile(f, backend="eager")(torch.ones(3))
""",
        tmp_path,
    ).breaks
    assert site.file.endswith("program.py") and "filter" in site.source


def test_a_consequence_names_its_cause(tmp_path: Path) -> None:
    seen = run(
        """
def f(x, names):
    for _ in range(2):
        print("loop")
    table = {name: x for name in names.items()}
    return x + 1

torch.compile(f, backend="eager")(torch.ones(3), {"a": 1})
""",
        tmp_path,
    )
    by_rule = {site.rule: site for site in seen.breaks}
    if not expected("example/rule/comprehension-echo/0"):  # Python 3.12 has no frame for it.
        assert "comprehension-echo" not in by_rule
        return
    assert by_rule["comprehension-echo"].consequence_of == by_rule["print-call"].fingerprint


@pytest.mark.parametrize(
    ("line", "category", "traced_with"),
    [
        ("return x * random.random()", "rng-device-state", "tracing/random"),
        ("return x * np.random.uniform()", "rng-device-state", ""),
        ("return x[: n] * 2", "scalar-extraction", ""),
    ],
)
def test_what_torch_calls_by_another_name(
    tmp_path: Path, line: str, category: str, traced_with: str
) -> None:
    seen = run(
        f"""
import random
import numpy as np

def f(x, n):
    {line}

torch.compile(f, backend="eager")(torch.ones(3), torch.tensor(2))
""",
        tmp_path,
    )
    if traced_with and expected(traced_with):
        assert not seen.breaks
    else:
        assert category in {site.category for site in seen.breaks}


def test_the_optimizers_own_break_is_called_benign(tmp_path: Path) -> None:
    seen = run(
        """
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
(w * 2).sum().backward()

def step():
    optimizer.step()

torch.compile(step, backend="eager")()
torch.compile(optimizer.step, backend="eager")()
""",
        tmp_path,
    )
    explicit = [site for site in seen.breaks if site.category == "explicit"]
    assert explicit and all("benign" in site.remedy[0].text for site in explicit)


def test_in_a_library_the_users_own_means_come_first(tmp_path: Path) -> None:
    """A stand-in for a library: code under site-packages, steered by an argument and a field."""
    library = tmp_path / "site-packages" / "somelib"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(
        """
import torch

class Layer(torch.nn.Module):
    def __init__(self, layerdrop):
        super().__init__()
        self.layerdrop = layerdrop

    def forward(self, x, mask=None):
        if torch.rand(()) < self.layerdrop:
            return x
        return x + 1
"""
    )
    seen = capture(
        f"""
import sys
sys.path.insert(0, {str(library.parent)!r})
import torch
from somelib import Layer
torch.compile(Layer(0.5), backend="eager")(torch.ones(3))
sys.path.pop(0)
del sys.modules["somelib"]
""",
        tmp_path,
    )
    [site] = seen.breaks
    [remedy] = site.remedy
    assert remedy.kind == "judgement" and "`layerdrop`" in remedy.text


def test_in_a_library_a_recompile_is_for_its_caller_too(tmp_path: Path) -> None:
    """The same, for guards: a cache that grows, layers that differ, and the mode of the call."""
    library = tmp_path / "site-packages" / "somelib"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(
        """
import torch

class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x, cache):
        return x * (self.layer_idx + 1) + cache.sum()
"""
    )
    seen = capture(
        f"""
import sys
sys.path.insert(0, {str(library.parent)!r})
import torch
from somelib import Layer
first = torch.compile(Layer(0), backend="eager", dynamic=False)
for size in (3, 4):
    first(torch.ones(3), torch.ones(size))
torch.compile(Layer(1), backend="eager", dynamic=False)(torch.ones(3), torch.ones(4))
with torch.no_grad():
    first(torch.ones(3), torch.ones(4))
sys.path.pop(0)
del sys.modules["somelib"]
""",
        tmp_path,
    )
    told = {
        cause.rule: [each.text for each in cause.remedy]
        for frame in seen.recompiles
        for cause in frame.causes
    }
    assert told.keys() == {"size-change", "layer-index", "grad-mode"}
    assert "give the model a fixed-size cache" in told["size-change"][0]
    assert "generate()" not in told["size-change"][0], "that is another library's"
    assert "compile the model that holds them" in told["layer-index"][0]
    assert "both trains and evaluates" in told["grad-mode"][0]
    assert "after a second value" in told["size-change"][1] and "warm-up" in told["layer-index"][1]


def test_backend_errors_are_not_blamed_on_the_line(tmp_path: Path) -> None:
    seen = run(
        """
def broken(gm, inputs):
    raise ValueError("no such op")

def f(x):
    return x + 1

try:
    torch.compile(f, backend=broken)(torch.ones(3))
except Exception:
    pass
""",
        tmp_path,
    )
    [failure] = seen.failures
    assert (failure.category, failure.function) == ("backend-failure", "f")
    assert "broken" in failure.why
