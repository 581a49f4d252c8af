#: note: nothing is to be changed, so there is no other program
import torch


@torch.compile(backend="eager", dynamic=False)
def whiten(grad):
    return grad / (grad.norm(dim=-1, keepdim=True) + 1e-6)


class Rows(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(whiten(p.grad), alpha=-group["lr"])


torch.manual_seed(0)
net = torch.nn.Sequential(*(torch.nn.Linear(3, n, bias=False) for n in (3,)), torch.nn.Linear(3, 5, bias=False), torch.nn.Linear(5, 2, bias=False))
rows = Rows(net.parameters(), 0.1)
for _ in range(3):
    net.zero_grad()
    net(torch.ones(2, 3)).sum().backward()
    rows.step()
print(tuple(net[0].weight.shape))
