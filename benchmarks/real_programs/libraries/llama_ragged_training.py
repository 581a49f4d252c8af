"""Train a small Llama on documents of different lengths, each batch padded to its longest."""

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

VOCAB = 64
LENGTHS = (12, 20, 28, 16)
BATCH = 4


def make_documents():
    """Counting sequences, in groups of one length."""
    documents = []
    for length in LENGTHS * 3:
        for _ in range(BATCH):
            start = torch.randint(1, VOCAB, (1,))
            documents.append((start + torch.arange(length)) % (VOCAB - 1) + 1)
    return documents


def collate(documents):
    tokens = pad_sequence(documents, batch_first=True)
    return {
        "input_ids": tokens,
        "attention_mask": (tokens != 0).long(),
        "labels": tokens.masked_fill(tokens == 0, -100),
    }


def main():
    torch.manual_seed(23)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        use_cache=False,
    )
    model = LlamaForCausalLM(config)
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(make_documents(), batch_size=BATCH, collate_fn=collate)
    for step, batch in enumerate(loader):
        loss = compiled(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            print("step", step, "length", batch["input_ids"].shape[1], f"loss {loss.item():.2f}")


if __name__ == "__main__":
    main()
