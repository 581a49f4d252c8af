# ideal: none
# sound: capture-scalars capture-shapes value-read-first
# trap: the flag stays on the module, where everybody sees whether the last batch had a prompt
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.extra = nn.Linear(8, 8)
        self.has_prompt = False

    def before(self, x, prompt):
        if self.has_prompt:
            x = x.masked_scatter(prompt.unsqueeze(-1), self.extra(x[prompt]))
        return x

    def after(self, x, prompt):
        if not self.has_prompt:
            return x
        rows = x[prompt]
        x = x.clone()
        x[prompt] = rows * torch.sigmoid(rows)
        return x

    def forward(self, x, prompt):
        self.has_prompt = bool(prompt.any())
        x = self.proj(self.before(x, prompt)).relu()
        return self.after(x, prompt)


torch.manual_seed(0)
model = torch.compile(Encoder().eval(), backend="eager")
with torch.no_grad():
    for prompt in ([1, 0, 0, 1], [0, 1, 0, 0]):
        print(f"{model(torch.randn(4, 8), torch.tensor(prompt).bool()).sum().item():.4f}")
