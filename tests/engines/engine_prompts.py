#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prompts as an installed vLLM makes them, without a server: one JSON request and answer a line.

Runs in vLLM's own environment. The first line is a JSON object {"folder", "template"}; "template" is a
file, or null for the folder's own. Each further line is a request as tests/golden/prepare_lines.cc
takes it. An answer is {"ids": [...], "text": ...} or {"error": ...}.
"""

import json
import os
import sys
import types

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

# Libraries print what they like; answers have the stream to themselves.
ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

import vllm  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.renderers import hf  # noqa: E402

try:
    from vllm.renderers.chat_utils import parse_chat_messages
except ImportError:  # before 0.32
    from vllm.entrypoints.chat_utils import parse_chat_messages


def model_config(folder):
    """As much of vLLM's configuration as rendering text looks at."""
    return types.SimpleNamespace(
        model=folder, tokenizer=folder, tokenizer_revision=None, revision=None, code_revision=None,
        trust_remote_code=False, multimodal_config=None, enable_prompt_embeds=False,
        allowed_local_media_path="", allowed_media_domains=None, is_multimodal_model=False,
        hf_config=types.SimpleNamespace(model_type=""))


class Engine:
    def __init__(self, folder, template):
        self.tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        self.config = model_config(folder)
        self.template = None
        if template is not None:
            with open(template, encoding="utf-8") as file:
                self.template = file.read()

    def chat(self, body):
        request = ChatCompletionRequest.model_validate_json(body)
        tools = None if request.tools is None else [tool.model_dump() for tool in request.tools]
        params = request.build_chat_params(self.template, "auto").with_defaults(
            {"tokenize": False} | ({} if tools is None else {"tools": tools}))
        kwargs = {key: value for key, value in params.chat_template_kwargs.items()
                  if key not in ("tools", "tokenize")}
        content_format = hf.resolve_chat_template_content_format(
            chat_template=params.chat_template, tools=tools, given_format="auto",
            tokenizer=self.tokenizer, model_config=self.config)
        conversation = parse_chat_messages(request.messages, self.config,
                                           content_format=content_format)[0]
        text = hf.safe_apply_chat_template(self.config, self.tokenizer, conversation,
                                           chat_template=params.chat_template, tools=tools,
                                           tokenize=False, **kwargs)
        ids = self.tokenizer.encode(text, add_special_tokens=request.add_special_tokens)
        return {"text": text, "ids": ids}

    def completion(self, body):
        request = json.loads(body)
        special = request.get("add_special_tokens", True)
        return {"ids": self.tokenizer.encode(request["prompt"], add_special_tokens=special)}

    def answer(self, request):
        try:
            if request["api"] == "chat":
                return self.chat(request["body"])
            return self.completion(request["body"])
        except Exception as error:  # pylint: disable=broad-except  # whatever the engine refuses
            return {"error": f"{type(error).__name__}: {error}"[:300]}


def say(answer):
    print(json.dumps(answer), file=ANSWERS, flush=True)


def main():
    engine = None
    for line in sys.stdin:
        request = json.loads(line)
        if "folder" in request:
            try:
                engine = Engine(request["folder"], request["template"])
                say({"release": vllm.__version__})
            except Exception as error:  # pylint: disable=broad-except
                engine = None
                say({"error": f"{type(error).__name__}: {error}"[:300]})
        else:
            say(engine.answer(request))


if __name__ == "__main__":
    main()
