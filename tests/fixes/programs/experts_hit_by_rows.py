# ideal: run-when-empty
# Mixtral's loop over the experts that were hit, by the rows of nonzero.
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, n, k):
        super().__init__()
        self.num_experts, self.top_k = n, k
        self.gate = nn.Linear(d, n, bias=False)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d)) for _ in range(n)]
        )

    def forward(self, hidden_states):
        batch, length, dim = hidden_states.shape
        hidden_states = hidden_states.view(-1, dim)
        weights = F.softmax(self.gate(hidden_states), dim=1, dtype=torch.float)
        weights, selected = torch.topk(weights, self.top_k, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(hidden_states.dtype)
        final = torch.zeros(
            (batch * length, dim), dtype=hidden_states.dtype, device=hidden_states.device
        )
        expert_mask = F.one_hot(selected, num_classes=self.num_experts).permute(2, 1, 0)
        expert_hit = torch.greater(expert_mask.sum(dim=(-1, -2)), 0).nonzero()
        for expert_idx in expert_hit:
            expert_layer = self.experts[expert_idx]
            idx, top_x = torch.where(expert_mask[expert_idx].squeeze(0))
            current = hidden_states[None, top_x].reshape(-1, dim)
            current = expert_layer(current) * weights[top_x, idx, None]
            final.index_add_(0, top_x, current.to(hidden_states.dtype))
        return final.reshape(batch, length, dim)


torch.manual_seed(0)
net = Block(8, 4, 2).eval()
f = torch.compile(net, backend="eager")
with torch.no_grad():
    for _ in range(2):
        print(round(f(torch.randn(2, 5, 8)).sum().item(), 4))
