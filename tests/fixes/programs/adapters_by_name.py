# ideal: raised-limit
import torch
from torch import nn

NAMES = ["en", "de", "fr", "es", "it", "pl", "cs", "nl", "pt", "sv"]


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.extra = nn.ParameterDict({name: nn.Parameter(torch.randn(4, 4)) for name in NAMES})
        self.active = NAMES[0]

    def forward(self, x):
        return self.base(x) + x @ self.extra[self.active]


torch.manual_seed(0)
model = Adapted().eval()
served = torch.compile(model, backend="eager")
with torch.inference_mode():
    for number in range(40):
        model.active = NAMES[number * 7 % 10]
        print(f"{served(torch.randn(2, 4)).sum().item():.4f}")
