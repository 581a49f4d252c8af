import torch
from torch import nn

torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def forward(self, x, valid):
        out = torch.zeros_like(x)
        picked = valid.flatten().nonzero().flatten()
        if (len(picked) if self.training else valid.numel()) > 0:
            rows = picked if self.training else torch.cat([picked, picked.new_zeros(1)])
            out[valid] = (self.drop(x.flatten(0, 1)[rows]) + 1)[: len(picked)]
        return out


net = torch.compile(Net().eval(), backend="eager")
with torch.no_grad():
    net(torch.ones(2, 3, 2), torch.tensor([[True, False, True], [False, False, True]]))
