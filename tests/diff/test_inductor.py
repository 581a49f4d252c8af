"""Inductor itself: right verdicts on what it does by design and on real models."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from compilescope import KernelDiffHarness

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.usefixtures("cxx")]


def compared(model: Any, example: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return KernelDiffHarness(model, example, **options).compare()


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = F.silu(layer(x)) * 2 + 0.1 * x
        return F.softmax(x.float(), -1).to(x.dtype)


def test_dropout_is_replayed_in_training() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.5))
    report = compared(model, torch.randn(4, 8), train=True)
    assert report.verdict == "pass", report.summary()


def test_what_bfloat16_rounds_is_no_error() -> None:
    report = compared(Chain().bfloat16(), torch.randn(32, 64).bfloat16())
    assert report.verdict == "pass", report.summary()
    assert report.anchored


def test_a_cast_out_of_range_is_undefined() -> None:
    report = compared(lambda x: (x * 1000).to(torch.int8), torch.randn(64))
    assert report.verdict == "unknown"
    assert "undefined" in report.reason


def test_nan_and_infinity_at_the_same_places() -> None:
    report = compared(lambda x: (x.log(), x / 0), torch.randn(64))
    assert report.verdict == "pass", report.summary()


def test_a_transformer_with_loss_and_labels() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=64,
        vocab_size=100,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).bfloat16().train()
    ids = torch.randint(0, 100, (2, 16))
    example = {"input_ids": ids, "labels": ids}
    report = compared(model, example, train=True, optimizer="adamw")
    assert report.verdict == "pass", report.summary()
    assert "output.past_key_values.layers[0].keys" in report.to_dict()["outputs"]


@pytest.mark.gpu
def test_half_precision_and_random_numbers_on_a_gpu() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Dropout(0.2), nn.LayerNorm(256))
    model = model.half().cuda()
    report = compared(model, torch.randn(64, 256, device="cuda").half(), train=True)
    assert report.verdict == "pass", report.summary()
    torch.set_float32_matmul_precision("high")
    try:
        report = compared(nn.Linear(2048, 64).cuda(), torch.randn(64, 2048, device="cuda"))
        assert report.verdict in ("pass", "unknown"), report.summary()
    finally:
        torch.set_float32_matmul_precision("highest")
