# ideal: run-when-empty
# Experts without tokens are left by continue.
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, n, k):
        super().__init__()
        self.num_experts, self.top_k = n, k
        self.gate = nn.Linear(d, n, bias=False)
        self.experts = nn.ModuleList([nn.Linear(d, d) for _ in range(n)])

    def forward(self, x):
        weights, selected = torch.topk(self.gate(x).softmax(-1), self.top_k, dim=-1)
        final = torch.zeros_like(x)
        expert_mask = F.one_hot(selected, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            idx, top_x = torch.where(expert_mask[expert_idx])
            if top_x.shape[0] == 0:
                continue
            current = self.experts[expert_idx](x[top_x]) * weights[top_x, idx, None]
            final.index_add_(0, top_x, current)
        return final


torch.manual_seed(0)
net = Block(8, 4, 2).eval()
f = torch.compile(net, backend="eager")
for _ in range(2):
    with torch.no_grad():
        print(round(f(torch.randn(10, 8)).sum().item(), 4))
