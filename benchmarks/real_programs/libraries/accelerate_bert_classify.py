"""Sentence-pair style classification of synthetic token sequences with BERT and accelerate."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

VOCAB = 64
LENGTH = 24


def make_data(size, seed):
    """Label 1 when the first token occurs again later in the sequence."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, VOCAB, (size, LENGTH), generator=generator)
    labels = (tokens[:, 1:] == tokens[:, :1]).any(dim=1).long()
    return TensorDataset(tokens, torch.ones_like(tokens), labels)


def evaluate(accelerator, model, loader):
    model.eval()
    correct = total = 0
    for tokens, mask, labels in loader:
        with torch.no_grad():
            logits = model(input_ids=tokens, attention_mask=mask).logits
        predictions, references = accelerator.gather_for_metrics((logits.argmax(-1), labels))
        correct += (predictions == references).sum().item()
        total += len(references)
    return correct / total


def main():
    set_seed(42)
    accelerator = Accelerator(cpu=True, dynamo_backend="inductor")
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train = DataLoader(make_data(64, 0), batch_size=16, shuffle=True)
    held_out = DataLoader(make_data(32, 1), batch_size=16)
    model, optimizer, train, held_out = accelerator.prepare(model, optimizer, train, held_out)
    for epoch in range(2):
        model.train()
        total = 0.0
        for tokens, mask, labels in train:
            outputs = model(input_ids=tokens, attention_mask=mask, labels=labels)
            accelerator.backward(outputs.loss)
            optimizer.step()
            optimizer.zero_grad()
            total += outputs.loss.item()
        accuracy = evaluate(accelerator, model, held_out)
        accelerator.print(f"epoch {epoch} loss {total / len(train):.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
