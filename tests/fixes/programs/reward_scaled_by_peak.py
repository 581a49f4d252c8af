# ideal: tensor-for-number
"""A loss that divides rewards by their largest size, or by one where that is smaller."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class QNetwork(nn.Module):
    def __init__(self, inputs=4, actions=3):
        super().__init__()
        self.inner = nn.Linear(inputs, 16)
        self.out = nn.Linear(16, actions)

    def forward(self, x):
        return self.out(torch.relu(self.inner(x)))


@torch.compile(backend="aot_eager")
def td_loss(net, target_net, obs, action, reward, gamma):
    scale = max(reward.abs().max().item(), 1.0)
    reward = reward / scale
    with torch.no_grad():
        future = target_net(obs.flip(0)).max(dim=1).values
        target = reward + gamma * future
    value = net(obs).gather(1, action[:, None]).squeeze(1)
    return F.smooth_l1_loss(value, target)


def batches(count, size=8):
    for n in range(count):
        obs = torch.randn(size, 4)
        action = torch.randint(3, (size,))
        yield obs, action, torch.randn(size) * (0.1 + n)


def main():
    torch.manual_seed(0)
    net, target_net = QNetwork(), QNetwork()
    target_net.load_state_dict(net.state_dict())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step, (obs, action, reward) in enumerate(batches(5)):
        loss = td_loss(net, target_net, obs, action, reward, 0.9)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{step} {loss.item():.4f}")


main()
