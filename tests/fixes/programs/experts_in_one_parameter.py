# ideal: run-when-empty
# The same with the weights of all experts in one parameter, in training: it has a gradient anyway.
import torch
from torch import nn
import torch.nn.functional as F


class Experts(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.num_experts = n
        self.gate_up_proj = nn.Parameter(torch.randn(n, 2 * d, d) * 0.1)
        self.down_proj = nn.Parameter(torch.randn(n, d, d) * 0.1)
        self.act_fn = nn.SiLU()

    def forward(self, hidden_states, top_k_index, top_k_weights):
        final_hidden_states = torch.zeros_like(hidden_states)
        with torch.no_grad():
            expert_mask = F.one_hot(top_k_index, num_classes=self.num_experts + 1)
            expert_mask = expert_mask.permute(2, 1, 0)
            expert_hit = torch.greater(expert_mask.sum(dim=(-1, -2)), 0).nonzero()

        for expert_idx in expert_hit:
            expert_idx = expert_idx[0]
            if expert_idx == self.num_experts:
                continue
            top_k_pos, token_idx = torch.where(expert_mask[expert_idx])
            current_state = hidden_states[token_idx]
            gate, up = F.linear(current_state, self.gate_up_proj[expert_idx]).chunk(2, dim=-1)
            current_hidden_states = self.act_fn(gate) * up
            current_hidden_states = F.linear(current_hidden_states, self.down_proj[expert_idx])
            current_hidden_states = (
                current_hidden_states * top_k_weights[token_idx, top_k_pos, None]
            )
            final_hidden_states.index_add_(
                0, token_idx, current_hidden_states.to(final_hidden_states.dtype)
            )
        return final_hidden_states


torch.manual_seed(0)
net = Experts(8, 4)
router = nn.Linear(8, 4)
f = torch.compile(net, backend="eager")
for _ in range(2):
    x = torch.randn(10, 8)
    weights, chosen = router(x).softmax(-1).topk(2, dim=-1)
    f(x, chosen, weights).square().sum().backward()
    print(round(net.down_proj.grad.sum().item(), 4))
