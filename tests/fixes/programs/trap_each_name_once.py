# ideal: none
# trap: each name is there for one call: more versions would serve nobody
import torch
from torch import nn


class Tagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.tag = ""

    def forward(self, x):
        return self.base(x) + len(self.tag)


torch.manual_seed(0)
model = Tagged().eval()
served = torch.compile(model, backend="eager")
with torch.inference_mode():
    for number in range(24):
        model.tag = f"request {number}"
        print(f"{served(torch.randn(2, 4)).sum().item():.4f}")
