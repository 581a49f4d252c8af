"""Operators that Inductor leaves to eager mode, and a large table transposed each time."""

#: causes fallback copy
#: needs cuda
import torch
from gpt import fast
from turns import planted, run

FALLBACK, COPY = planted("fallback"), planted("copy")
fast()
table = torch.randn(12288, 12288, device="cuda")
turned = table.t().contiguous()
scores = torch.randn(256, 16384, device="cuda")


@torch.compile
def model(scores: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        if FALLBACK:
            scores = torch.kthvalue(scores, 100, dim=-1).values[..., None] + scores
        else:
            scores = scores.amax(-1, keepdim=True) + scores
    return scores[:, :64] + table[:64].sum(1)


def step() -> None:
    model(scores, table.t().contiguous() if COPY else turned)  #: here copy


run(step, 40)
