"""What the small compiler gains: fused against unfused, PyTorch eager mode and Inductor.

All versions of a program take turns, call by call, so that whatever else the machine does hits all
of them; each figure is a median. The bars: on long pointwise chains over large tensors fused is at
least 3 times as fast as unfused and twice as fast as eager mode; on softmax and layer norm it is no
slower than eager mode (within 5 %, which is what medians of one run differ by). BERT-small runs and
agrees with eager mode (KernelDiff). Exits with 1 if a bar is missed.

    python benchmarks/mini_backend.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

import compilescope
from compilescope.apps.learn.kit import median_ms

NOISE = 1.05


class Case(NamedTuple):
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    over_unfused: float | None
    """How many times as fast as unfused it must be; None: no bar."""
    over_eager: float | None


def chain(length: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(length // 4):
            x = torch.relu(x * y + 0.5) - y
        return x

    return run


def smooth_chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.tanh(x) * torch.sigmoid(y) + torch.exp(-x * x)
    return x


def cases(quick: bool) -> Iterator[Case]:
    size = 2**20 if quick else 2**24
    pair = (torch.randn(size), torch.randn(size))
    for length in (8, 32):
        yield Case(f"chain of {length} ops, {size:,} numbers", chain(length), pair, 3, 2)
    name = f"chain with tanh, sigmoid, exp, {size:,} numbers"
    yield Case(name, smooth_chain, pair, 3, 2)
    shapes = [(256, 1024)] if quick else [(4096, 1024), (8192, 768), (64, 50257)]
    for rows, columns in shapes:
        x = torch.randn(rows, columns)
        weight, bias = torch.randn(columns), torch.randn(columns)
        yield Case(f"softmax {rows} x {columns}", lambda x: F.softmax(x, -1), (x,), None, 1)

        def norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return F.layer_norm(x, w.shape, w, b)

        yield Case(f"layer norm {rows} x {columns}", norm, (x, weight, bias), None, 1)


def measure(case: Case, runs: int) -> dict[str, Any]:
    torch.compiler.reset()
    backends: dict[str, Any] = {
        "fused": compilescope.MiniAdapter(),
        "unfused": compilescope.MiniAdapter(off=["fusion"]),
        "inductor": "inductor",
    }
    functions: dict[str, Callable[[], Any]] = {"eager": lambda: case.function(*case.arguments)}
    for name, backend in backends.items():
        compiled = torch.compile(case.function, backend=backend, dynamic=False)
        functions[name] = partial(compiled, *case.arguments)
    with torch.no_grad():
        torch.testing.assert_close(functions["fused"](), functions["eager"]())
        times = median_ms(functions, runs=runs)
    wanted = {"unfused": case.over_unfused, "eager": case.over_eager}
    missed = [
        f"{times[other] / times['fused']:.2f}x of {bar}x over {other}"
        for other, bar in wanted.items()
        if bar is not None and times["fused"] * bar > times[other] * (NOISE if bar == 1 else 1)
    ]
    return {"case": case.name, **{f"{name}_ms": ms for name, ms in times.items()}, "missed": missed}


def bert(quick: bool, runs: int) -> dict[str, Any] | None:
    try:
        from transformers import BertConfig, BertModel
    except ImportError:
        return None
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048
    )
    model = BertModel(config).eval()
    ids = torch.randint(config.vocab_size, (1, 32) if quick else (8, 128))
    adapter = compilescope.MiniAdapter()
    functions: dict[str, Callable[[], Any]] = {"eager": lambda: model(ids)}
    torch.compiler.reset()
    for name, backend in (("mini", adapter), ("inductor", "inductor")):
        compiled = torch.compile(model, backend=backend, dynamic=False)
        functions[name] = partial(compiled, ids)
    with torch.no_grad():
        times = median_ms(functions, runs=max(3, runs // 3))
        report = adapter.report
        harness = compilescope.KernelDiffHarness(
            model, (ids,), test_backend=compilescope.MiniAdapter()
        )
        verdict = harness.compare().verdict
    return {
        "model": "BERT-small, {} x {} tokens".format(*ids.shape),
        "parameters": sum(each.numel() for each in model.parameters()),
        **{f"{name}_ms": ms for name, ms in times.items()},
        "ops_on_mini": report.ops_share,
        "flops_on_mini": report.flops_share,
        "islands": len(report.islands),
        "kerneldiff": verdict,
    }


def tell(rows: list[dict[str, Any]], model: dict[str, Any] | None) -> None:
    width = max(len(row["case"]) for row in rows)
    columns = ("eager", "unfused", "fused", "inductor")
    heads = "  ".join(f"{name:>8}" for name in columns)
    print(f"{'median ms of one call':{width}}  {heads}  over unfused  over eager")
    for row in rows:
        times = "  ".join(f"{row[f'{name}_ms']:8.2f}" for name in columns)
        ratios = (f"{row[f'{name}_ms'] / row['fused_ms']:.2f}x" for name in ("unfused", "eager"))
        missed = "  missed: " + ", ".join(row["missed"]) if row["missed"] else ""
        print(f"{row['case']:{width}}  {times}  {next(ratios):>12}  {next(ratios):>10}{missed}")
    if model is None:
        print("BERT-small: not run, transformers is not installed (the extra `models`)")
        return
    print(
        f"{model['model']}: eager {model['eager_ms']:.0f} ms, mini {model['mini_ms']:.0f} ms, "
        f"inductor {model['inductor_ms']:.0f} ms; {model['ops_on_mini']:.1%} of ops and "
        f"{model['flops_on_mini']:.1%} of FLOPs on mini in {model['islands']} islands; "
        f"KernelDiff: {model['kerneldiff']}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tensors: does it run at all?")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    runs = 5 if asked.quick else 25
    rows = [measure(case, runs) for case in cases(asked.quick)]
    model = bert(asked.quick, runs)
    if asked.json:
        print(json.dumps({"cases": rows, "model": model}, indent=2))
    else:
        tell(rows, model)
    missed = any(row["missed"] for row in rows) and not asked.quick
    return 1 if missed or (model is not None and model["kerneldiff"] != "pass") else 0


if __name__ == "__main__":
    sys.exit(main())
