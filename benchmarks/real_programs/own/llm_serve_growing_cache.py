"""A small text-generation server: requests come from a queue, tokens are streamed back."""

import dataclasses
import os
import queue
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB = 128
EOS = 0
PROMPT = 8


@dataclasses.dataclass
class Config:
    width: int = 32
    heads: int = 4
    layers: int = 1
    max_length: int = 128


@dataclasses.dataclass
class Request:
    name: str
    prompt: list
    max_new_tokens: int


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x, past):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.out(y.transpose(1, 2).reshape(batch, length, width)), (k, v)


class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm1 = nn.RMSNorm(config.width)
        self.norm2 = nn.RMSNorm(config.width)
        self.attn = Attention(config)
        self.gate = nn.Linear(config.width, 2 * config.width, bias=False)
        self.up = nn.Linear(config.width, 2 * config.width, bias=False)
        self.down = nn.Linear(2 * config.width, config.width, bias=False)

    def forward(self, x, past):
        y, present = self.attn(self.norm1(x), past)
        x = x + y
        z = self.norm2(x)
        return x + self.down(F.silu(self.gate(z)) * self.up(z)), present


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, config.width)
        self.position = nn.Embedding(config.max_length, config.width)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.layers)])
        self.norm = nn.RMSNorm(config.width)

    def forward(self, ids, cache):
        start = cache[0][0].shape[2] if cache else 0
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.embed(ids) + self.position(positions)
        presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, cache[i] if cache else None)
            presents.append(present)
        return self.norm(x[:, -1]) @ self.embed.weight.T, presents


class Engine:
    def __init__(self, model, temperature=0.8):
        self.model = torch.compile(model, dynamic=False)
        self.temperature = temperature
        self.generator = torch.Generator().manual_seed(0)
        self.served = 0

    def pick(self, logits):
        probs = torch.softmax(logits / self.temperature, dim=-1)
        return torch.multinomial(probs, 1, generator=self.generator)

    @torch.inference_mode()
    def stream(self, request):
        ids = torch.tensor([request.prompt])
        cache = []
        for _ in range(request.max_new_tokens):
            logits, cache = self.model(ids, cache)
            ids = self.pick(logits)
            token = ids.item()
            yield token
            if token == EOS:
                break
        self.served += 1


def make_requests(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    requests = queue.SimpleQueue()
    for i in range(count):
        prompt = torch.randint(1, VOCAB, (PROMPT,), generator=generator).tolist()
        requests.put(Request(f"req-{i}", prompt, max_new_tokens=5))
    return requests


def load_model(folder):
    """Weights as a training job would have left them."""
    torch.manual_seed(3)
    config = Config()
    path = os.path.join(folder, "decoder.pt")
    torch.save(Decoder(config).state_dict(), path)
    model = Decoder(config)
    model.load_state_dict(torch.load(path))
    return model.eval()


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = load_model(folder)
    engine = Engine(model)
    requests = make_requests(6)
    lengths = []
    while not requests.empty():
        request = requests.get()
        tokens = list(engine.stream(request))
        lengths.append(len(tokens))
        print(f"{request.name}: prompt {len(request.prompt)} -> {tokens} ({len(tokens)})")
    print(f"served {engine.served}, mean new tokens {sum(lengths) / len(lengths):.1f}")


if __name__ == "__main__":
    main()
