# ideal: where-for-if
# Half precision guards as many models have them.
import torch
from torch import isinf, isnan, nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        nn.init.constant_(self.proj.weight, 0.25)
        nn.init.zeros_(self.proj.bias)

    def forward(self, hidden_states):
        hidden_states = self.proj(hidden_states)
        # clamp inf values to enable fp16 training
        if hidden_states.dtype == torch.float32 and (
            isinf(hidden_states).any() or isnan(hidden_states).any()
        ):
            clamp_value = torch.finfo(hidden_states.dtype).max - 1000
            hidden_states = torch.clamp(hidden_states, min=-clamp_value, max=clamp_value)
        return hidden_states.relu()


block = torch.compile(Block(), backend="aot_eager")
for fill in (1.0, float("inf"), -float("inf")):
    print(block(torch.full((2, 8), fill)).max().item())
