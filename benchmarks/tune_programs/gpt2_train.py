"""GPT-2 from a transformers config, in training, without dropout."""

import itertools
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SMALL = "--small" in sys.argv
DEVICE = "cuda" if torch.cuda.is_available() and not SMALL else "cpu"
STEPS = 64 if SMALL else 320
WINDOW = STEPS // 16


def now():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def build():
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 2} if SMALL else {"n_layer": 6}
    return GPT2LMHeadModel(GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


def batch():
    x = torch.randint(0, 50000, (1, 16) if SMALL else (4, 256), device=DEVICE)
    return x, x


def main():
    torch.manual_seed(0)
    model = build().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    compiled = torch.compile(model)
    batches, times = [batch() for _ in range(4)], []
    for step in range(STEPS):
        if step >= STEPS // 2 and step % WINDOW == 0:
            times.append(now())
        x, y = batches[step % 4]
        loss = compiled(input_ids=x, labels=y).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    times.append(now())
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))


if __name__ == "__main__":
    main()
