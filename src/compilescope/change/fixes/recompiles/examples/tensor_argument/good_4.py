import torch


@torch.compile(backend="eager", dynamic=False)
def loss(error, spread, beta):
    return error.mean() + beta * spread.mean()


for step in range(3):
    print(loss(torch.ones(3), torch.ones(3), beta=torch.tensor(step / 3)).dtype)
