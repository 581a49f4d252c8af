"""PPO, cleanrl style, one file. Corridor environment, vectorised by hand."""
import random
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical


@dataclass
class Args:
    seed: int = 1
    num_envs: int = 4
    num_steps: int = 16
    num_iterations: int = 6
    num_minibatches: int = 4
    update_epochs: int = 2
    learning_rate: float = 2.5e-3
    anneal_lr: bool = True
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


class Corridors:
    def __init__(self, n, length=8):
        self.n, self.length = n, length
        self.pos = np.zeros(n, dtype=np.int64)
        self.t = np.zeros(n, dtype=np.int64)

    def obs(self):
        return np.eye(self.length, dtype=np.float32)[self.pos]

    def reset(self):
        self.pos[:] = 0
        self.t[:] = 0
        return self.obs()

    def step(self, action):
        self.pos = np.clip(self.pos + 2 * action - 1, 0, self.length - 1)
        self.t += 1
        won = self.pos == self.length - 1
        done = won | (self.t >= 24)
        self.pos[done] = 0
        self.t[done] = 0
        return self.obs(), won.astype(np.float32) - 0.01, done.astype(np.float32)


def layer_init(layer, std=np.sqrt(2)):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(obs, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), 1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(obs, 32)), nn.Tanh(), layer_init(nn.Linear(32, actions), 0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


if __name__ == "__main__":
    args = Args()
    random.seed(args.seed); np.random.seed(args.seed); torch.manual_seed(args.seed)
    envs = Corridors(args.num_envs)
    agent = Agent(8, 2)
    policy = torch.compile(agent.get_action_and_value, backend="aot_eager")
    value_of = torch.compile(agent.get_value, backend="aot_eager")
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    batch_size = args.num_envs * args.num_steps
    mb = batch_size // args.num_minibatches
    obs = torch.zeros(args.num_steps, args.num_envs, 8)
    actions = torch.zeros(args.num_steps, args.num_envs)
    logprobs, rewards, dones, values = (torch.zeros(args.num_steps, args.num_envs) for _ in range(4))
    start = time.time()
    next_obs, next_done = torch.tensor(envs.reset()), torch.zeros(args.num_envs)
    for iteration in range(1, args.num_iterations + 1):
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = (1 - (iteration - 1) / args.num_iterations) * args.learning_rate
        for step in range(args.num_steps):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = policy(next_obs)
                values[step] = value.flatten()
            actions[step], logprobs[step] = action, logprob
            o, r, d = envs.step(action.numpy())
            next_obs, next_done, rewards[step] = torch.tensor(o), torch.tensor(d), torch.tensor(r)
        with torch.no_grad():
            next_value = value_of(next_obs).flatten()
            advantages, last = torch.zeros_like(rewards), 0
            for t in reversed(range(args.num_steps)):
                nonterm = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
                nv = next_value if t == args.num_steps - 1 else values[t + 1]
                delta = rewards[t] + args.gamma * nv * nonterm - values[t]
                advantages[t] = last = delta + args.gamma * args.gae_lambda * nonterm * last
            returns = advantages + values
        b_obs, b_lp, b_act = obs.reshape(-1, 8), logprobs.reshape(-1), actions.reshape(-1)
        b_adv, b_ret = advantages.reshape(-1), returns.reshape(-1)
        inds = np.arange(batch_size)
        for epoch in range(args.update_epochs):
            np.random.shuffle(inds)
            for s in range(0, batch_size, mb):
                i = inds[s : s + mb]
                _, newlp, entropy, newv = policy(b_obs[i], b_act.long()[i])
                ratio = (newlp - b_lp[i]).exp()
                a = (b_adv[i] - b_adv[i].mean()) / (b_adv[i].std() + 1e-8)
                pg = torch.max(-a * ratio, -a * ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)).mean()
                vl = 0.5 * ((newv.view(-1) - b_ret[i]) ** 2).mean()
                loss = pg - args.ent_coef * entropy.mean() + args.vf_coef * vl
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
        print(f"iteration {iteration} reward {rewards.sum().item():.2f} loss {loss.item():.3f}")
