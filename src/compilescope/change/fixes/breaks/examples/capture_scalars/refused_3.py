#: because: already set
import torch

torch._dynamo.config.capture_scalar_outputs = True


class Net(torch.nn.Module):
    def forward(self, x):
        return x * x.sum().item()


torch._dynamo.config.capture_scalar_outputs = False
torch.compile(Net(), backend="eager")(torch.ones(4))
