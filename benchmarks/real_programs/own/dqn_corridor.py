"""DQN on a small corridor world with a replay buffer and a target network."""

import argparse
import collections
import os
import random
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F


class Corridor:
    """Walk to the right end; the pit in the middle must be jumped."""

    actions = 3  # left, right, jump

    def __init__(self, length=10):
        self.length, self.pit = length, length // 2

    def reset(self):
        self.position, self.steps = 0, 0
        return self.observe()

    def observe(self):
        obs = torch.zeros(self.length + 2)
        obs[self.position] = 1.0
        obs[-2] = self.steps / 30
        obs[-1] = (self.pit - self.position) / self.length
        return obs

    def step(self, action):
        self.steps += 1
        move = (-1, 1, 2)[action]
        self.position = min(max(self.position + move, 0), self.length - 1)
        reward = -0.02 - (0.05 if action == 2 else 0.0)
        if self.position == self.pit:
            return self.observe(), -1.0, True
        if self.position == self.length - 1:
            return self.observe(), 1.0, True
        return self.observe(), reward, self.steps >= 30


class QNetwork(nn.Module):
    def __init__(self, inputs, actions, hidden=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, obs):
        h = self.body(obs)
        advantage = self.advantage(h)
        return self.value(h) + advantage - advantage.mean(dim=-1, keepdim=True)


class ReplayBuffer:
    def __init__(self, size):
        self.items = collections.deque(maxlen=size)

    def add(self, *item):
        self.items.append(item)

    def sample(self, count):
        obs, action, reward, following, done = zip(*random.sample(self.items, count), strict=True)
        return (
            torch.stack(obs),
            torch.tensor(action),
            torch.tensor(reward),
            torch.stack(following),
            torch.tensor(done, dtype=torch.float32),
        )


class Stats:
    def __init__(self):
        self.losses, self.rewards = [], []

    def add(self, loss, reward):
        self.losses.append(loss)
        self.rewards.append(reward)

    def mean(self, values, count=50):
        last = values[-count:]
        return sum(last) / max(len(last), 1)


@torch.compile
def td_loss(q_net, target_net, batch, gamma, stats):
    obs, action, reward, following, done = batch
    scale = max(reward.abs().max().item(), 1.0)
    reward = reward / scale
    with torch.no_grad():
        best = q_net(following).argmax(dim=1, keepdim=True)
        future = target_net(following).gather(1, best).squeeze(1)
        target = reward + gamma * future * (1 - done)
    value = q_net(obs).gather(1, action[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(value, target)
    stats.add(loss.item(), reward.mean().item())
    return loss


def epsilon_at(step, args):
    fraction = min(1.0, step / args.decay)
    return args.eps_start + fraction * (args.eps_end - args.eps_start)


@torch.no_grad()
def act(q_net, obs, epsilon, actions):
    if random.random() < epsilon:
        return random.randrange(actions)
    return q_net(obs[None]).argmax().item()


def evaluate(q_net, env, episodes=3):
    total = 0.0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, reward, done = env.step(act(q_net, obs, 0.0, env.actions))
            total += reward
    return total / episodes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--learning-starts", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--eps-start", type=float, default=1.0)
    parser.add_argument("--eps-end", type=float, default=0.05)
    parser.add_argument("--decay", type=int, default=400)
    args = parser.parse_args()

    random.seed(0)
    torch.manual_seed(0)
    env = Corridor()
    inputs = env.length + 2
    q_net, target_net = QNetwork(inputs, env.actions), QNetwork(inputs, env.actions)
    target_net.load_state_dict(q_net.state_dict())
    optimizer = torch.optim.Adam(q_net.parameters(), lr=2e-3)
    buffer, stats = ReplayBuffer(2000), Stats()

    obs, episodes, returns = env.reset(), 0, 0.0
    for step in range(1, args.steps + 1):
        epsilon = epsilon_at(step, args)
        action = act(q_net, obs, epsilon, env.actions)
        following, reward, done = env.step(action)
        buffer.add(obs, action, reward, following, done)
        returns += reward
        obs = following
        if done:
            obs, episodes = env.reset(), episodes + 1
        if step > args.learning_starts:
            batch = buffer.sample(args.batch_size)
            loss = td_loss(q_net, target_net, batch, args.gamma, stats)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
            optimizer.step()
        if step % 50 == 0:
            target_net.load_state_dict(q_net.state_dict())
        if step % 200 == 0:
            mean_loss = stats.mean(stats.losses)
            print(f"step {step} eps {epsilon:.2f} episodes {episodes} loss {mean_loss:.4f}")
    with tempfile.TemporaryDirectory() as folder:
        torch.save(q_net.state_dict(), os.path.join(folder, "dqn.pt"))
    print(f"return while training {returns / max(episodes, 1):.2f}")
    print(f"greedy return {evaluate(q_net, Corridor()):.2f}")


if __name__ == "__main__":
    main()
