"""Train a small x-transformers decoder on a copy task, then continue prompts with generate()."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

TOKENS = 16
LENGTH = 16


def batches(count, size=8):
    for _ in range(count):
        half = torch.randint(1, TOKENS, (size, LENGTH // 2))
        start = torch.zeros(size, 1, dtype=torch.long)
        yield torch.cat([start, half, half], dim=1)


def main():
    torch.manual_seed(21)
    network = TransformerWrapper(
        num_tokens=TOKENS,
        max_seq_len=2 * LENGTH,
        attn_layers=Decoder(dim=32, depth=1, heads=2, attn_dim_head=16, rotary_pos_emb=True),
    )
    model = AutoregressiveWrapper(network)
    compiled = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    model.train()
    for step, batch in enumerate(batches(12)):
        loss = compiled(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            print("step", step, "loss", round(loss.item(), 3))

    model.eval()
    for prompt in batches(2, size=2):
        continued = model.generate(prompt[:, : LENGTH // 2 + 1], LENGTH // 2, temperature=0.0)
        print(continued[0].tolist())


if __name__ == "__main__":
    main()
