# ideal: none
# trap: only the weight that was taken has a gradient; the others are left alone by weight decay
import torch

weights = [torch.full((2,), n, requires_grad=True) for n in (1.0, 3.0, 2.0)]
optimizer = torch.optim.SGD(weights, lr=0.1, weight_decay=0.5)


@torch.compile(backend="eager")
def loss_of(x):
    best = max(weights, key=lambda w: w.sum())
    return (best * x).sum()


for _ in range(2):
    optimizer.zero_grad()
    loss_of(torch.ones(2)).backward()
    optimizer.step()
print([w.tolist() for w in weights])
