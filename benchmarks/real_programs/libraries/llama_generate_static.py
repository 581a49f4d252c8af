"""Greedy decoding of prompt batches with a small Llama and the static key/value cache."""

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, StaticCache

PROMPT = 12
NEW_TOKENS = 10
BATCH = 2


def build_model():
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


@torch.no_grad()
def decode(model, step, prompt, cache):
    """Prefill once, then one compiled step a token on a cache of fixed length."""
    cache.reset()
    position = torch.arange(prompt.shape[1])
    logits = model(prompt, past_key_values=cache, position_ids=position[None]).logits
    token = logits[:, -1:].argmax(-1)
    generated = [token]
    position_ids = torch.full((BATCH, 1), prompt.shape[1])
    for _ in range(NEW_TOKENS - 1):
        logits = step(token, past_key_values=cache, position_ids=position_ids).logits
        token = logits[:, -1:].argmax(-1)
        generated.append(token)
        position_ids = position_ids + 1
    return torch.cat(generated, dim=1)


def main():
    torch.manual_seed(3)
    model = build_model()
    reference = GenerationConfig(max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=True)
    step = torch.compile(model)
    cache = StaticCache(config=model.config, max_cache_len=PROMPT + NEW_TOKENS)
    for batch in range(3):
        prompt = torch.randint(2, 128, (BATCH, PROMPT))
        tokens = decode(model, step, prompt, cache)
        expected = model.generate(prompt, generation_config=reference)[:, PROMPT:]
        print(batch, tokens[0].tolist(), bool((tokens == expected).all()))


if __name__ == "__main__":
    main()
