"""A mixture of experts that leaves out experts without tokens, by asking a tensor."""

import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))


class Router(nn.Module):
    """The best experts of each token, and their weights."""

    def __init__(self, width: int, experts: int, best: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, experts, bias=False)
        self.best = best

    def forward(self, x: torch.Tensor):
        weights, chosen = self.score(x).softmax(dim=-1).topk(self.best, dim=-1)
        return weights / weights.sum(dim=-1, keepdim=True), chosen


def gather_tokens(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return x * rows.unsqueeze(-1).to(x.dtype)


def weight_of(weights: torch.Tensor, chosen: torch.Tensor, number: int) -> torch.Tensor:
    return (weights * (chosen == number)).sum(dim=-1, keepdim=True)


class Mixture(nn.Module):
    def __init__(self, width: int = 16, hidden: int = 32, experts: int = 3, best: int = 2) -> None:
        super().__init__()
        self.router = Router(width, experts, best)
        self.experts = nn.ModuleList([Expert(width, hidden) for _ in range(experts)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = self.norm(x).flatten(0, 1)
        weights, chosen = self.router(flat)
        result = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).any(dim=-1)
            if rows.any():
                tokens = gather_tokens(flat, rows)
                result = result + expert(tokens) * weight_of(weights, chosen, number)
        return x + result.view_as(x)


class Tower(nn.Module):
    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Mixture(width) for _ in range(depth)])
        self.last = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.last(x.mean(dim=1))


def balance(model: nn.Module) -> float:
    """How unevenly the routers' weights are spread: only for the log."""
    spread = [m.score.weight.std().item() for m in model.modules() if isinstance(m, Router)]
    return sum(spread) / len(spread)


def main() -> None:
    torch.manual_seed(1)
    model = Tower(depth=1, width=16)
    run = torch.compile(model, backend="eager")
    x = torch.randn(2, 4, 16)
    out = run(x)
    print("out", tuple(out.shape), "spread", round(balance(model), 4))


if __name__ == "__main__":
    main()
