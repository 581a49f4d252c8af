#: because: a tensor is used as more than a size in `height / width`
import torch


def rows(shapes):
    found = []
    for height, width in shapes:
        found.append(torch.zeros(height).flatten() + height / width)
    return torch.cat(found)


@torch.compile(backend="eager")
def f(maps):
    sizes = [each.shape for each in maps]
    shapes = torch.as_tensor(sizes)
    return rows(shapes)


f([torch.ones(4, 6), torch.ones(2, 3)])
