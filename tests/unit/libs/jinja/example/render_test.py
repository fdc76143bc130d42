#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example program of libs/jinja renders a chat template, and says why it cannot."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import example_program

# ChatML, as Qwen's models have it.
CHAT = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


class RenderTest(example_program.ExampleTest):
    def test_renders_a_chat(self):
        context = {
            "messages": [
                {"role": "system", "content": " Be brief. "},
                {"role": "user", "content": "Grüße, 世界"},
            ],
            "add_generation_prompt": True,
        }
        self.assert_prints(
            "<|im_start|>system\nBe brief.<|im_end|>\n"
            "<|im_start|>user\nGrüße, 世界<|im_end|>\n"
            "<|im_start|>assistant\n",
            self.write("chat_template.jinja", CHAT),
            json.dumps(context),
        )

    def test_says_why_it_cannot(self):
        template = self.write("chat_template.jinja", CHAT)
        self.assert_fails(1, "cannot read", self.folder / "absent", "{}")
        self.assert_fails(1, "cannot be read: ", self.write("broken", "{% if %}"), "{}")
        self.assert_fails(1, "no such role", self.write("raises", "{{ raise_exception('no such role') }}"), "{}")
        self.assert_fails(1, "not valid JSON", template, "{")
        self.assert_fails(1, "not a JSON object", template, "[]")
        self.assert_fails(2, "usage: render", template)


if __name__ == "__main__":
    example_program.main()
