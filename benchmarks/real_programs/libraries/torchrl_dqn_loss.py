"""Deep Q-learning updates on random transitions with torchrl's DQNLoss, compiled."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.modules import QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate

OBSERVATION = 6
ACTIONS = 3


def make_transitions(size):
    observation = torch.randn(size, OBSERVATION)
    action = nn.functional.one_hot(torch.randint(0, ACTIONS, (size,)), ACTIONS)
    reward = (observation[:, :ACTIONS] * action).sum(-1, keepdim=True)
    done = torch.rand(size, 1) < 0.1
    return TensorDict(
        {
            "observation": observation,
            "action": action,
            ("next", "observation"): torch.randn(size, OBSERVATION),
            ("next", "reward"): reward,
            ("next", "done"): done,
            ("next", "terminated"): done,
        },
        batch_size=[size],
    )


def main():
    torch.manual_seed(8)
    network = nn.Sequential(nn.Linear(OBSERVATION, 32), nn.Tanh(), nn.Linear(32, ACTIONS))
    module = TensorDictModule(network, in_keys=["observation"], out_keys=["action_value"])
    actor = QValueActor(module=module, in_keys=["observation"], action_space="one-hot")
    loss_module = DQNLoss(actor, action_space="one-hot", delay_value=True)
    loss_module.make_value_estimator(gamma=0.9)
    target = SoftUpdate(loss_module, eps=0.95)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=1e-2)
    compiled_loss = torch.compile(loss_module)

    losses = []
    for step in range(12):
        batch = make_transitions(64)
        loss = compiled_loss(batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        target.step()
        losses.append(loss.detach())
        if step % 4 == 3:
            print("step", step, "loss", round(torch.stack(losses[-4:]).mean().item(), 2))


if __name__ == "__main__":
    main()
