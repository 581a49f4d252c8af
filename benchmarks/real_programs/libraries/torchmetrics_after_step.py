"""Train and validate a regressor; torchmetrics take the outputs of the compiled functions."""

import torch
from torch import nn
from torchmetrics import MeanMetric, MeanSquaredError, MetricCollection, R2Score


def make_batch(weights, size=64):
    inputs = torch.randn(size, weights.shape[0])
    return inputs, inputs @ weights + 0.1 * torch.randn(size)


def main():
    torch.manual_seed(10)
    weights = torch.randn(8)
    network = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    mean_loss = MeanMetric()
    scores = MetricCollection([MeanSquaredError(), R2Score()])

    @torch.compile
    def training_loss(inputs, targets):
        predictions = network(inputs).squeeze(-1)
        return nn.functional.huber_loss(predictions, targets)

    @torch.compile
    def predict(inputs):
        return network(inputs).squeeze(-1)

    for epoch in range(3):
        network.train()
        for _ in range(8):
            optimizer.zero_grad()
            loss = training_loss(*make_batch(weights))
            loss.backward()
            optimizer.step()
            mean_loss.update(loss.detach())
        network.eval()
        with torch.no_grad():
            for _ in range(2):
                inputs, targets = make_batch(weights)
                scores.update(predict(inputs), targets)
        values = {name: round(value.item(), 2) for name, value in scores.compute().items()}
        print(epoch, round(mean_loss.compute().item(), 2), values)
        mean_loss.reset()
        scores.reset()


if __name__ == "__main__":
    main()
