#: because: `shapes\[0\] = 1` changes the tensor
import torch


def clipped(shapes):
    shapes[0] = 1
    return shapes.sum()


@torch.compile(backend="eager")
def f(maps):
    sizes = [each.shape for each in maps]
    shapes = torch.as_tensor(sizes)
    total = clipped(shapes)
    found = []
    for height, width in shapes:
        found.append(torch.zeros(height, width).flatten() + total)
    return torch.cat(found)


f([torch.ones(4, 6), torch.ones(2, 3)])
