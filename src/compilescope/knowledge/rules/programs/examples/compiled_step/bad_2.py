#: note: no module: what computes the loss becomes a function
import torch

w = torch.ones(4, requires_grad=True)


@torch.compile(backend="eager")
def update(x, y):
    miss = ((x @ w - y) ** 2).mean()
    miss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad)
        w.grad.zero_()
    return miss.detach()


torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16)
for _ in range(3):
    print(round(update(x, y).item(), 4))
