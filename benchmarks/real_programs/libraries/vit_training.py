"""Train vit-pytorch's SimpleViT to tell which colour of a noisy picture is the brightest."""

import importlib.machinery
import sys
import types

import torch
import torch.nn.functional as F

sys.modules.setdefault("torchvision", types.ModuleType("torchvision"))
sys.modules["torchvision"].transforms = types.ModuleType("torchvision.transforms")
sys.modules["torchvision"].__spec__ = importlib.machinery.ModuleSpec("torchvision", None)

from vit_pytorch import SimpleViT  # noqa: E402

CLASSES = 3
SIZE = 16


def make_batch(size):
    """Noise with one colour brighter than the others; the label says which one."""
    labels = torch.randint(0, CLASSES, (size,))
    images = torch.randn(size, 3, SIZE, SIZE)
    images = images + F.one_hot(labels, 3)[:, :, None, None]
    return images, labels


def main():
    torch.manual_seed(2)
    model = SimpleViT(
        image_size=SIZE,
        patch_size=8,
        num_classes=CLASSES,
        dim=32,
        depth=1,
        heads=2,
        mlp_dim=32,
        dim_head=16,
    )
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
    for step in range(30):
        images, labels = make_batch(16)
        loss = F.cross_entropy(compiled(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 10 == 0:
            print("step", step, "loss", round(loss.item(), 1))
    images, labels = make_batch(64)
    model.eval()
    with torch.no_grad():
        accuracy = (model(images).argmax(-1) == labels).float().mean().item()
    print("accuracy", round(accuracy, 2))


if __name__ == "__main__":
    main()
