"""LoRA fine-tuning of a small Llama with peft on sequences of one length."""

import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

VOCAB = 64
LENGTH = 16


def make_batch(size=8):
    """Counting sequences that start anywhere."""
    start = torch.randint(0, VOCAB, (size, 1))
    return (start + torch.arange(LENGTH)) % VOCAB


def main():
    torch.manual_seed(17)
    base = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=LENGTH,
            use_cache=False,
        )
    )
    lora = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=4,
        lora_alpha=8,
        lora_dropout=0.0,
        target_modules=["q_proj", "v_proj"],
    )
    model = get_peft_model(base, lora)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print("trainable parameters", sum(p.numel() for p in trainable))
    optimizer = torch.optim.AdamW(trainable, lr=1e-2)
    compiled = torch.compile(model)
    model.train()
    for step in range(8):
        tokens = make_batch()
        loss = compiled(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 3 == 0:
            print("step", step, "loss", round(loss.item(), 3))
    merged = model.merge_and_unload().eval()
    with torch.no_grad():
        tokens = make_batch()
        print("merged loss", round(merged(input_ids=tokens, labels=tokens).loss.item(), 3))


if __name__ == "__main__":
    main()
