"""Train a classifier and keep torchmetrics up to date in the compiled training step."""

import torch
from torch import nn
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

CLASSES = 4


def make_batch(centres, size=64):
    labels = torch.randint(0, CLASSES, (size,))
    return centres[labels] + torch.randn(size, centres.shape[1]), labels


def main():
    torch.manual_seed(6)
    centres = torch.randn(CLASSES, 8) * 2
    network = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    accuracy = MulticlassAccuracy(CLASSES, average="micro", validate_args=False)
    mean_loss = MeanMetric()

    @torch.compile
    def training_step(inputs, labels):
        logits = network(inputs)
        loss = nn.functional.cross_entropy(logits, labels)
        accuracy.update(logits.detach(), labels)
        mean_loss.update(loss.detach())
        return loss

    for epoch in range(2):
        for _ in range(4):
            optimizer.zero_grad()
            loss = training_step(*make_batch(centres))
            loss.backward()
            optimizer.step()
        print(epoch, round(mean_loss.compute().item(), 3), round(accuracy.compute().item(), 3))
        accuracy.reset()
        mean_loss.reset()


if __name__ == "__main__":
    main()
