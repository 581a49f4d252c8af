"""Chat-style generation with a preallocated cache: one prefill call, then one call a token."""

import argparse
import pathlib
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB = 160
PROMPT = 16
PAD = 0


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.wq = nn.Linear(width, width, bias=False)
        self.wkv = nn.Linear(width, 2 * width, bias=False)
        self.wo = nn.Linear(width, width, bias=False)

    def setup_cache(self, batch, length):
        shape = (batch, self.heads, length, self.head_dim)
        self.register_buffer("k_cache", torch.zeros(shape), persistent=False)
        self.register_buffer("v_cache", torch.zeros(shape), persistent=False)

    def forward(self, x, mask, input_pos):
        batch, length, width = x.shape
        q = self.wq(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        k, v = self.wkv(x).view(batch, length, 2, self.heads, self.head_dim).unbind(2)
        self.k_cache[:, :, input_pos] = k.transpose(1, 2)
        self.v_cache[:, :, input_pos] = v.transpose(1, 2)
        y = F.scaled_dot_product_attention(q, self.k_cache, self.v_cache, attn_mask=mask)
        return self.wo(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x, mask, input_pos):
        x = x + self.attn(self.norm1(x), mask, input_pos)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width=32, heads=4, depth=1, max_length=64):
        super().__init__()
        self.max_length = max_length
        self.embed = nn.Embedding(VOCAB, width)
        self.pos = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCAB, bias=False)
        causal = torch.tril(torch.ones(max_length, max_length, dtype=torch.bool))
        self.register_buffer("causal", causal, persistent=False)

    def setup_caches(self, batch):
        for block in self.blocks:
            block.attn.setup_cache(batch, self.max_length)

    def forward(self, ids, input_pos):
        mask = self.causal[input_pos][None, None]
        x = self.embed(ids) + self.pos(input_pos)
        for block in self.blocks:
            x = block(x, mask, input_pos)
        return self.head(self.norm(x))


def prefill(model, ids, input_pos, last):
    logits = model(ids, input_pos)
    return logits[:, last].squeeze(1)


def decode_one(model, ids, input_pos):
    return model(ids, input_pos)[:, -1]


def sample(logits, generator, top_k=20, temperature=0.7):
    values, _ = torch.topk(logits, top_k)
    logits = torch.where(logits < values[:, -1:], -float("inf"), logits)
    probs = torch.softmax(logits / temperature, dim=-1)
    return torch.multinomial(probs, 1, generator=generator)


class ChatServer:
    def __init__(self, model, batch=1):
        self.model = model
        self.model.setup_caches(batch)
        self.prefill = torch.compile(prefill, fullgraph=True)
        self.decode = torch.compile(decode_one, fullgraph=True)
        self.generator = torch.Generator().manual_seed(11)

    @torch.no_grad()
    def reply(self, prompt, max_new_tokens):
        """The prompt is padded on the right; what the pads wrote is overwritten while decoding."""
        padded = torch.full((1, PROMPT), PAD)
        padded[0, : len(prompt)] = torch.tensor(prompt)
        last = torch.tensor([len(prompt) - 1])
        logits = self.prefill(self.model, padded, torch.arange(PROMPT), last)
        token = sample(logits, self.generator)
        out = [token.item()]
        pos = torch.tensor([len(prompt)])
        for _ in range(max_new_tokens - 1):
            logits = self.decode(self.model, token, pos)
            token = sample(logits, self.generator)
            out.append(token.item())
            pos = pos + 1
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=5)
    parser.add_argument("--new-tokens", type=int, default=14)
    args = parser.parse_args()

    torch.manual_seed(5)
    model = Transformer().eval()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chat.pt"
        torch.save(model.state_dict(), path)
        served = Transformer().eval()
        served.load_state_dict(torch.load(path))

    server = ChatServer(served)
    generator = torch.Generator().manual_seed(1)
    total = 0
    for i in range(args.requests):
        prompt = torch.randint(1, VOCAB, (5 + 2 * i,), generator=generator).tolist()
        answer = server.reply(prompt, args.new_tokens + i)
        total += len(answer)
        print(f"request {i}: {len(prompt)} prompt tokens, answer {answer[:5]}...")
    print(f"{total} tokens for {args.requests} requests")


if __name__ == "__main__":
    main()
