# ideal: size-given
# Each atom gets the state of its molecule beside its own.
import torch
from torch import nn


class Update(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.state = nn.Linear(4, 4)
        self.mix = nn.Linear(8, 4)

    def forward(self, atoms, states, counts):
        spread = torch.repeat_interleave(self.state(states), counts, dim=0)
        joined = torch.cat([atoms, spread], dim=-1)
        return self.mix(joined).tanh()


update = Update()
run = torch.compile(update, backend="aot_eager")
for counts in ([2, 3, 1], [1, 1, 4], [3, 2, 1]):
    out = run(torch.randn(6, 4), torch.randn(3, 4), torch.tensor(counts))
    out.sum().backward()
    print(round(out.sum().item(), 4), round(update.state.weight.grad.sum().item(), 4))
