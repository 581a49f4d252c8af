import torch

@torch.compile(backend="eager")
def f(x, state):
    return x + state

x = torch.ones(3, requires_grad=True)
state = torch.zeros(3)
for _ in range(3):
    state = f(x, state.detach())
    print(state.tolist())
