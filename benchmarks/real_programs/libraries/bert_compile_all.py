"""BERT token classifier with transformers, no torch.compile in it. Run with --compile-all."""
import argparse

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForTokenClassification, get_linear_schedule_with_warmup

LABELS = ["O", "PER", "LOC"]


def corpus(n, length, g):
    rows = []
    for _ in range(n):
        ids = torch.randint(5, 60, (length,), generator=g)
        labels = torch.where(ids % 7 == 0, 1, torch.where(ids % 11 == 0, 2, 0))
        rows.append({"input_ids": ids, "attention_mask": torch.ones(length, dtype=torch.long), "labels": labels})
    return rows


def evaluate(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for batch in loader:
            out = model(**batch)
            hits += (out.logits.argmax(-1) == batch["labels"]).sum().item()
            total += batch["labels"].numel()
    return hits / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=32, num_labels=len(LABELS))
    model = BertForTokenClassification(config)
    train = DataLoader(corpus(32, 16, g), batch_size=8, shuffle=True)
    valid = DataLoader(corpus(16, 16, g), batch_size=8)
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    sched = get_linear_schedule_with_warmup(opt, 2, a.epochs * len(train))
    for epoch in range(a.epochs):
        model.train()
        for batch in train:
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
        print(f"epoch {epoch} loss {loss.item():.3f} acc {evaluate(model, valid):.2f}")


if __name__ == "__main__":
    main()
