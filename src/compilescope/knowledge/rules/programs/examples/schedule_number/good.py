import torch


@torch.compile(backend="aot_eager")
def anneal(weights, noise, heat):
    torch._foreach_add_(weights, torch._foreach_mul(noise, heat))


def run(weights):
    for step in range(5):
        anneal(weights, [torch.ones_like(each) for each in weights], torch.tensor(0.5 / (step + 1)))


weights = [torch.zeros(3), torch.zeros(2, 2)]
run(weights)
print([round(each.sum().item(), 4) for each in weights])
