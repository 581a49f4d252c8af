import torch
from torch.utils.checkpoint import checkpoint


class Layer(torch.nn.Module):
    def forward(self, x):
        h = torch.relu(x)
        self.largest = h.detach().amax()
        return h


layer = Layer()


@torch._dynamo.config.patch(skip_fwd_side_effects_in_bwd_under_checkpoint=True)
@torch.compile(backend="eager")
def f(x):
    return checkpoint(layer, x, use_reentrant=False).sum()


f(torch.ones(3, requires_grad=True)).backward()
print(layer.largest)
