#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example program of libs/tokenizer tokenizes with a model's folder, and says why it cannot."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import example_program

# Byte pairs: letters, "he", "ll" and "hell", a word with the space before it, and one special token.
VOCABULARY = ["h", "e", "l", "o", "w", "r", "d", "\u0120", "he", "ll", "hell", "hello"]
MERGES = ["h e", "l l", "he ll", "hell o"]
SPECIAL = "<|end|>"
TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [
        {
            "id": len(VOCABULARY),
            "content": SPECIAL,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
    ],
    "normalizer": None,
    "pre_tokenizer": {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    },
    "post_processor": None,
    "decoder": {"type": "ByteLevel"},
    "model": {
        "type": "BPE",
        "vocab": {token: number for number, token in enumerate(VOCABULARY)},
        "merges": MERGES,
    },
}


class TokenizeTest(example_program.ExampleTest):
    def test_prints_ids_and_pieces(self):
        self.write("tokenizer.json", json.dumps(TOKENIZER))
        self.assert_prints(
            "11\thello\n7\t \n4\tw\n3\to\n10\thell\n12\t<|end|>\n",
            self.folder,
            "hello wohell<|end|>",
        )

    def test_says_why_it_cannot(self):
        self.assert_fails(1, "neither tokenizer.json nor a tiktoken rank file", self.folder, "x")
        self.write("tokenizer.json", json.dumps(TOKENIZER | {"model": {"type": "Guess"}}))
        self.assert_fails(1, 'the model "Guess" is not known', self.folder, "x")
        self.assert_fails(2, "usage: tokenize", self.folder)


if __name__ == "__main__":
    example_program.main()
