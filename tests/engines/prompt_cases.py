# SPDX-License-Identifier: Apache-2.0
"""Chats and texts for comparing prompts: each leans on something that engines treat specially."""

import json

TOOL = {"type": "function",
        "function": {"name": "weather", "description": "The weather in a city.",
                     "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                                    "required": ["city"]}}}


def message(role, content, **members):
    return {"role": role, "content": content, **members}


def part(text, **members):
    return {"type": "text", "text": text, **members}


def call(arguments):
    return {"id": "call00001", "type": "function",
            "function": {"name": "weather", "arguments": arguments}}


USER = message("user", "Hello, who are you?")

CHATS = {
    "one message": {"messages": [USER]},
    "system first": {"messages": [message("system", "Be brief."), USER]},
    "several turns": {"messages": [message("system", "Be brief."), USER, message("assistant", "Baton."),
                                   message("user", "Again, please.")]},
    "unicode and spaces": {"messages": [message("user", "  Grüße,\n\t世界 🌍  e\u0301 \u00a0end ")]},
    "special tokens in text": {"messages": [message("user", "<|im_end|> <s> </s> <|eot_id|> [INST]")]},
    "empty content": {"messages": [message("user", "")]},
    "null content": {"messages": [message("assistant", None), USER]},
    "one part": {"messages": [message("user", [part("Hello")])]},
    "parts": {"messages": [message("user", [part("Hello"), part("there"), part("")])]},
    "parts with other members": {"messages": [message("user", [part("Hello", cache_control="x")])]},
    "a part that is a string": {"messages": [message("user", ["Hello", part("there")])]},
    "system in parts": {"messages": [message("system", [part("Be"), part("brief")]), USER]},
    "assistant in parts": {"messages": [USER, message("assistant", [part("I"), part("am")]), USER]},
    "developer first": {"messages": [message("developer", "Be brief."), USER]},
    "developer later": {"messages": [USER, message("developer", "Be brief."), USER]},
    "system and developer": {"messages": [message("system", "A."), message("developer", "B."), USER]},
    "developer before system": {"messages": [message("developer", "B."), message("system", "A."), USER]},
    "developer in parts": {"messages": [message("system", "A."),
                                        message("developer", [part("B"), part("C")]), USER]},
    "only a developer": {"messages": [message("developer", "Be brief.")]},
    "empty developer": {"messages": [message("system", "A."), message("developer", ""), USER]},
    "attribution line": {"messages": [message("system", "x-anthropic-billing-header: a=1;\nBe brief."),
                                      USER]},
    "attribution line alone": {"messages": [message("system", [part("x-anthropic-billing-header: a"),
                                                               part("Be brief.")]), USER]},
    "tools": {"messages": [USER], "tools": [TOOL], "tool_choice": "auto"},
    "tool calls": {"messages": [USER, message("assistant", None, tool_calls=[call('{"city": "Bonn"}')]),
                                message("tool", "Rain.", tool_call_id="call00001"), USER],
                   "tools": [TOOL], "tool_choice": "auto"},
    "tool result in parts": {"messages": [USER, message("assistant", "", tool_calls=[call("{}")]),
                                          message("tool", [part("Rain."), part("Wind.")],
                                                  tool_call_id="call00001")], "tools": [TOOL]},
    "arguments that are a list": {"messages": [USER, message("assistant", "", tool_calls=[call("[1]")]),
                                               message("tool", "Rain.", tool_call_id="call00001")]},
    "reasoning": {"messages": [USER, message("assistant", "A.", reasoning_content="Because."), USER]},
    "reasoning effort": {"messages": [USER], "reasoning_effort": "low"},
    "no thinking": {"messages": [USER], "chat_template_kwargs": {"enable_thinking": False}},
    "unset variables": {"messages": [USER], "chat_template_kwargs": {"enable_thinking": None}},
    "no generation prompt": {"messages": [USER], "add_generation_prompt": False},
    "continued answer": {"messages": [USER, message("assistant", "I am")],
                         "add_generation_prompt": False, "continue_final_message": True},
    "ends with an answer": {"messages": [USER, message("assistant", "I am Baton.")]},
    "with special tokens": {"messages": [USER], "add_special_tokens": True},
    "no messages": {"messages": []},
    "unknown role": {"messages": [message("narrator", "Once upon a time"), USER]},
    "a name": {"messages": [message("user", "Hello", name="ann")]},
}

TEXTS = [
    "", " ", "  ", "\n", "Hello world", " Hello world", "  Hello  world  ", "Hello\n\nworld\r\n\t!",
    "don't can't WE'LL I'd", "1234567890 3.14159 1,000,000", "a_b-c/d\\e|f", "ÄÖÜ ß éèê ñ",
    "e\u0301 a\u0308 \u1e9b\u0323", "世界,你好。", "こんにちは世界", "안녕하세요", "Привет, мир",
    "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया", "สวัสดีชาวโลก", "🌍🚀👩‍👩‍👧‍👦🇩🇪", "\u200b\u200d\ufeff",
    "\u00a0\u2003\u3000x", "<s>", "</s>", "<s> a </s> b", "<|endoftext|> x", "<|im_start|>user\nhi<|im_end|>",
    "<bos>a<eos>", "[INST] hi [/INST]", "<|begin_of_text|>x", "▁x ▁▁y", "ĠĊ", "#include <vector>\nint main() {}\n",
    "def f(x):\n    return x  # twice\n\n\n", "\t\t\tx", "x\t\ty", "....!!!???", "http://127.0.0.1:80/a?b=c&d",
    "The quick brown fox jumps over the lazy dog. " * 20, "a" * 200, "ab" * 100, " " * 50, "\n" * 20,
    "\x00\x01\x7f", "½ ² ™ ﬁ Ａ", "I\u0307 ı", "\U0001F468\u200d\U0001F4BB", "2024-11-17T23:59:59Z",
]


def requests():
    """Each case as (name, request)."""
    for name, body in CHATS.items():
        yield f"chat: {name}", {"api": "chat", "body": json.dumps({"model": "m", **body})}


def text_requests():
    for at, text in enumerate(TEXTS):
        for special in (True, False):
            body = {"model": "m", "prompt": text, "add_special_tokens": special}
            yield f"text {at}{' with special tokens' if special else ''}", {
                "api": "completions", "body": json.dumps(body)}
