import torch
from torch import nn

torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x, longer):
        idx = torch.where(longer)[0]
        if (len(idx) if self.training else len(x)) > 0:
            rows = idx if self.training else torch.cat([idx, idx.new_zeros(1)])
            x[idx] = self.norm(x[rows])[: len(idx)]
        return x + 1


net = torch.compile(Net().eval(), backend="eager")
with torch.no_grad():
    net(torch.ones(4, 2), torch.tensor([True, False, True, False]))
