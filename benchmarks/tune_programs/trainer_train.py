"""GPT-2 in training by transformers' Trainer, which compiles the model and makes the optimizer."""

import itertools
import sys
import tempfile
import time

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

SMALL = "--small" in sys.argv
STEPS = 64 if SMALL else 320
WINDOW = STEPS // 16


def now():
    if torch.cuda.is_available() and not SMALL:
        torch.cuda.synchronize()
    return time.perf_counter()


class Clock(TrainerCallback):
    def __init__(self):
        self.times = []

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step >= STEPS // 2 and state.global_step % WINDOW == 0:
            self.times.append(now())


class Tokens(torch.utils.data.Dataset):
    def __init__(self, count, length):
        self.ids = torch.randint(0, 128, (count, length))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


def build():
    size, layers, length = (32, 1, 16) if SMALL else (256, 6, 128)
    sizes = {"n_embd": size, "n_layer": layers, "n_head": 4, "n_positions": length}
    plain = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=128, **sizes, **plain)), length


def main():
    torch.manual_seed(0)
    model, length = build()
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=STEPS,
            per_device_train_batch_size=16,
            torch_compile=True,
            use_cpu=SMALL,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        data = Tokens(16 * 64, length)
        Trainer(model=model, args=arguments, train_dataset=data, callbacks=[clock]).train()
    times = [*clock.times, now()]
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))


if __name__ == "__main__":
    main()
