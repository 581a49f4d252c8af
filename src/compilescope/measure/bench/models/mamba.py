"""A Mamba-style language model: selective state spaces instead of attention, in plain torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from compilescope.measure.bench.built import Built, Model, class_loss

HEAD = 64
"""Channels that share one decay."""


def stretches(rates: Tensor) -> Tensor:
    """exp of the sum of `rates` over each stretch (s, t], and 0 where s > t.

    Each stretch is summed by itself: differences of one running sum would cancel.
    """
    length = rates.shape[-1]
    ones = torch.ones(length, length, device=rates.device, dtype=torch.bool)
    summed = rates.unsqueeze(-1).expand(*rates.shape, length).masked_fill(~ones.tril(-1), 0)
    return summed.cumsum(-2).masked_fill(~ones.tril(), -math.inf).exp()


def scan(rates: Tensor, x: Tensor, into: Tensor, out_of: Tensor, chunk: int = 64) -> Tensor:
    """The outputs out_of[t] @ h[t] of h[t] = exp(rates[t]) * h[t-1] + outer(into[t], x[t]).

    `rates` is (batch, heads, time) and not positive, `x` is (batch, heads, time, channels), `into`
    and `out_of` are (batch, 1, time, states). There is no loop over time: within a chunk the
    recurrence is a lower triangular matrix, and chunks hand their last state on in the same way.
    """
    length = rates.shape[-1]
    chunk = min(chunk, length)
    missing = -length % chunk
    rates = F.pad(rates, (0, missing)).unflatten(-1, (-1, chunk))
    x, into, out_of = (
        F.pad(each, (0, 0, 0, missing)).unflatten(-2, (-1, chunk)) for each in (x, into, out_of)
    )
    within = stretches(rates)
    inside = (out_of @ into.mT * within) @ x
    last = (into * within[..., -1, :].unsqueeze(-1)).mT @ x
    across = stretches(F.pad(rates.sum(-1), (1, 0)))[..., :-1, :-1]
    # The state that a chunk starts from: what the chunks before it left, decayed.
    before = F.pad(last.flatten(-2), (0, 0, 1, -1))
    first = (across @ before).unflatten(-1, last.shape[-2:])
    carried = (out_of * rates.cumsum(-1).exp().unsqueeze(-1)) @ first
    return (inside + carried).flatten(-3, -2)[..., :length, :]


class Mixer(nn.Module):  # type: ignore[misc]
    """in_proj, causal depthwise convolution, selective scan, gate, out_proj."""

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        inner = 2 * width
        heads = inner // HEAD
        mixed = inner + 2 * states
        self.parts = [inner, mixed, heads]
        self.mixed = [inner, states, states]
        self.in_proj = nn.Linear(width, sum(self.parts), bias=False)
        self.conv = nn.Conv1d(mixed, mixed, 4, padding=3, groups=mixed)
        self.step_bias = nn.Parameter(torch.full((heads,), math.log(math.expm1(0.01))))
        self.log_rates = nn.Parameter(torch.arange(1.0, heads + 1).log())
        self.skip = nn.Parameter(torch.ones(heads, 1, 1))
        self.norm = nn.RMSNorm(inner, eps=1e-5)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, mixed, step = self.in_proj(x).split(self.parts, dim=-1)
        mixed = F.silu(self.conv(mixed.mT)[..., : x.shape[1]].mT)
        u, into, out_of = mixed.split(self.mixed, dim=-1)
        u = u.unflatten(-1, (-1, HEAD)).transpose(1, 2)
        y = self._scanned(step, u, into.unsqueeze(1), out_of.unsqueeze(1)) + self.skip * u
        y = y.transpose(1, 2).flatten(-2)
        given: Tensor = self.out_proj(self.norm(y * F.silu(gate)))
        return given

    def _scanned(self, step: Tensor, u: Tensor, into: Tensor, out_of: Tensor) -> Tensor:
        # The state adds up over the whole sequence: in bfloat16 it would lose what comes late.
        wide = torch.promote_types(u.dtype, torch.float32)
        step = F.softplus(step.to(wide) + self.step_bias.to(wide)).mT
        rates = -step * self.log_rates.to(wide).exp().unsqueeze(-1)
        x = u.to(wide) * step.unsqueeze(-1)
        return scan(rates, x, into.to(wide), out_of.to(wide)).to(u.dtype)


class Mamba(nn.Module):  # type: ignore[misc]
    """Residual mixers between an embedding and a head that share their weights."""

    def __init__(self, words: int, width: int, layers: int, states: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-5) for _ in range(layers))
        self.mixers = nn.ModuleList(Mixer(width, states) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            x = x + mixer(norm(x))
        logits: Tensor = self.head(self.norm(x))
        return logits


def build(small: bool, batch: int) -> Built:
    words, length = (1000, 96) if small else (12800, 128)
    model = Mamba(words, 64, 2, 16) if small else Mamba(words, 512, 12, 128)
    return Built(model.eval(), (torch.randint(words, (batch, length)),), loss=class_loss)


MODEL = Model(
    name="mamba",
    title="Mamba (27M)",
    about="A Mamba-style selective state space model with 12 layers; plain torch, random weights.",
    build=build,
    parameters=27_195_456,
    batch=1,
    small_batch=2,
    inputs="128 tokens",
    aliases=("ssm", "mamba-27m", "mamba-ssm"),
)
