# ideal: none
# trap: one of the calls trains, so it must not be put under no_grad
import torch


weight = torch.ones(3, requires_grad=True)


@torch.compile(backend="eager")
def loss_of(x):
    return (x * weight).pow(2).sum()


x = torch.arange(3.0)
for _ in range(2):
    loss = loss_of(x)
    if loss.requires_grad:
        loss.backward()
    with torch.no_grad():
        print(loss_of(x + 1).item())
print(weight.grad)
