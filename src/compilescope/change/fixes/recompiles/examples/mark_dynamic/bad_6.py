import torch


@torch.compile(backend="eager", dynamic=False)
def step(x, caches):
    made = []
    for past in caches:
        k = x.sin()
        if past is not None:
            k = torch.cat((past, k), 1)
        x = x + torch.softmax(x @ k.mT, -1) @ k
        made.append(k)
    return x, made


for prompt in range(2):
    caches = [None] * 2
    x = torch.ones(2, 3, 4)
    for _ in range(6):
        y, caches = step(x, caches)
        x = torch.tanh(y[:, -1:])
