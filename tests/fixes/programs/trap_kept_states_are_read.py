# ideal: none
# trap: the states that the field switches off are read, in the same line as the loss
import copy
from collections import deque
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class DecoderConfig:
    width: int = 4
    use_cache: bool = True


@dataclass
class DecoderOutput:
    loss: torch.Tensor
    states: object = None


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layer = nn.Linear(config.width, config.width)
        self.recent = deque([0.0], maxlen=2)

    def keep(self, hidden):
        recent = copy.deepcopy(self.recent)
        recent.append(hidden)
        return list(recent)

    def forward(self, x, wanted):
        hidden = self.layer(x).tanh()
        states = None
        if self.config.use_cache:
            states = self.keep(hidden)
        return DecoderOutput((hidden - wanted).square().mean(), states)


torch.manual_seed(0)
model = Decoder(DecoderConfig(width=4))
compiled = torch.compile(model, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    output = compiled(torch.randn(2, 4), torch.zeros(2, 4))
    output.loss.backward()
    optimizer.step()
    print(f"{output.loss.item():.4f}", "with states" if output.states else "without")
