import torch


def points(shapes, ratios):
    found = []
    for level, (height, width) in enumerate(shapes):
        rows = torch.linspace(0.5, height - 0.5, height)
        columns = torch.linspace(0.5, width - 0.5, width)
        found.append((rows[:, None] + columns).flatten() / (ratios[level] * height))
    return torch.cat(found)


@torch.compile(backend="eager")
def f(maps, ratios):
    sizes = [each.shape for each in maps]
    shapes = torch.as_tensor(sizes)
    return points(shapes, ratios) * shapes.sum()


f([torch.ones(4, 6), torch.ones(2, 3)], torch.ones(2))
