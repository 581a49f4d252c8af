import torch


@torch.compile(backend="eager")
def step(x, cache, layer):
    cache["k"][layer].append(x.sin())
    k = torch.cat(cache["k"][layer])
    return x + torch.softmax(x @ k.T, -1) @ k


for prompt in range(2):
    cache = {"k": [[] for _ in range(2)]}
    x = torch.ones(1, 4)
    for _ in range(8):
        x = torch.tanh(step(x, cache, 1))
