import torch


@torch.compile(backend="eager", dynamic=False)
def brighten(image):
    return image * 1.5


for height, width in ((8, 6), (8, 7), (9, 6), (10, 7)):
    image = torch.ones(1, 3, height, width)
    torch._dynamo.maybe_mark_dynamic(image, 2)
    torch._dynamo.maybe_mark_dynamic(image, 3)
    brighten(image)
