# SPDX-License-Identifier: Apache-2.0
"""Writes a tiny Qwen2 with random weights beside the tokenizer in a folder: make_model.py FOLDER"""

import sys

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

# The same weights on every machine: recorded answers stay comparable. The wide initial range spreads the logits, so that greedy
# sampling has clear winners however the sums are ordered.
torch.manual_seed(7)
config = Qwen2Config(
    vocab_size=151936,
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=64,
    max_position_embeddings=32768,
    initializer_range=0.2,
    bos_token_id=151643,
    eos_token_id=151645,
    tie_word_embeddings=False,
)
Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
