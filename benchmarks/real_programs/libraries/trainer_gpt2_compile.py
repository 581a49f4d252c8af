"""Fine-tune a small GPT-2 with the transformers Trainer and torch_compile=True."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging

VOCAB = 96
BLOCK = 32


class CopyTask(Dataset):
    """Sequences whose second half repeats the first."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        half = torch.randint(1, VOCAB, (size, BLOCK // 2), generator=generator)
        self.tokens = torch.cat([half, half], dim=1)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main():
    set_seed(11)
    logging.set_verbosity_error()
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=BLOCK,
        n_embd=32,
        n_layer=1,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8,
            per_device_eval_batch_size=8,
            max_steps=12,
            learning_rate=3e-3,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            torch_compile=True,
            dataloader_drop_last=True,
            seed=11,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=CopyTask(96, seed=0),
            eval_dataset=CopyTask(16, seed=1),
        )
        trainer.remove_callback(PrinterCallback)
        result = trainer.train()
        print("steps", result.global_step)
        print("train loss", round(result.training_loss, 3))
        print("eval loss", round(trainer.evaluate()["eval_loss"], 3))


if __name__ == "__main__":
    main()
