import torch


def longest_run(scores, stop):
    """Picks the best, drops what is near it, and goes on."""
    left = scores.argsort(descending=True)
    picked = []
    while left.numel() > 0:
        best = left[0].item()
        picked.append(best)
        left = left[(left - best).abs() > stop]
    return picked


@torch.compile(backend="eager")
def find(image, weight):
    scores = (image @ weight).relu()
    best = scores / scores.sum()
    peaks = longest_run(best, 1)
    return peaks


torch.manual_seed(0)
weight = torch.randn(8, 6)
for _ in range(2):
    print(find(torch.randn(8), weight))
