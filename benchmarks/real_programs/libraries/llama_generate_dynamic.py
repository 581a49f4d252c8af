"""Answer prompts with generate() on a small Llama whose forward is compiled."""

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

PROMPTS = 3
LENGTH = 12


def build_model():
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def main():
    torch.manual_seed(5)
    model = build_model()
    model.forward = torch.compile(model.forward)
    generation = GenerationConfig(max_new_tokens=12, do_sample=False, use_cache=True)
    for number in range(PROMPTS):
        prompt = torch.randint(2, 128, (1, LENGTH))
        output = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            generation_config=generation,
        )
        print(number, output[0, LENGTH:].tolist())


if __name__ == "__main__":
    main()
