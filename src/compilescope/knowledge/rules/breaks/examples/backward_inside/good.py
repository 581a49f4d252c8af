import torch

w = torch.ones(3, requires_grad=True)

def step(x):
    loss = (x * w).sum()
    return loss

torch.compile(step, backend="eager")(torch.ones(3)).backward()
print(w.grad)
