import torch


@torch.compile(backend="aot_eager")
def anneal(weights, noise, heat):
    torch._foreach_add_(weights, noise, alpha=heat)


def run(weights):
    for step in range(5):
        anneal(weights, [torch.ones_like(each) for each in weights], 0.5 / (step + 1))


weights = [torch.zeros(3), torch.zeros(2, 2)]
run(weights)
print([round(each.sum().item(), 4) for each in weights])
