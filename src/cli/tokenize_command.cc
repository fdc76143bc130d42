// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/tokenize_command.h"

#include "core/result.h"
#include "libs/tokenizer/token_pieces.h"
#include "model/version.h"
#include "model/worker.h"
#include "prompt/library_errors.h"
#include "prompt/preprocessor.h"
#include "wire/json_object.h"
#include "wire/json_text.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::cli {
namespace {

constexpr std::string_view kTokenizeExamples = R"(Examples:
  echo -n "Hello, world" | baton tokenize --model /models/Llama-3.1-8B
  baton tokenize --model /models/Qwen3-8B --chat messages.json
  baton tokenize --model /models/Qwen3-8B --chat request.json --render
  baton tokenize --model /models/Qwen3-8B --file prompt.txt --no-special --json

A chat is a list of messages, or the body of a request to /v1/chat/completions.)";

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.good() && !file.eof()) return fail(Errc::InvalidRequest, "cannot read " + path);
  return text;
}

Result<std::string> read_text(const TokenizeOptions& options) {
  if (!options.file.empty()) return read_file(options.file);
  return std::string((std::istreambuf_iterator<char>(std::cin)), {});
}

// The body of a request, whether the file holds one or only its messages.
Result<std::string> read_chat(const TokenizeOptions& options) {
  auto text = read_file(options.chat);
  if (!text) return text;
  const std::size_t begin = wire::skip_space(*text, 0);
  if (begin < text->size() && (*text)[begin] == '[') return "{\"messages\":" + *text + "}";
  return text;
}

void print_table(const tokenizer::Tokenizer& tokenizer, const tokenizer::TokenIds& ids) {
  const std::vector<std::string> pieces = tokenizer::token_pieces(tokenizer, ids);
  for (std::size_t at = 0; at < ids.size(); ++at) {
    // Quoted, a person can see it: no control characters, no bytes that are no text.
    fmt::print("{:>8}  {}\n", ids[at], wire::json_quote(pieces[at]));
  }
  fmt::print("{} tokens\n", ids.size());
}

struct Tokens {
  tokenizer::TokenIds ids;
  std::string inexact;
};

Result<Tokens> tokens_of_chat(const prompt::Preprocessor& preprocessor,
                              const wire::JsonObject& body, const prompt::RenderContext& context) {
  auto prepared = preprocessor.chat(body, context);
  if (!prepared) return fail(std::move(prepared.error()));
  if (prepared->prompts.empty())
    return fail(Errc::InvalidRequest, "only the engine can tokenize this: " + prepared->inexact);
  return Tokens{std::move(prepared->prompts.front()), std::move(prepared->inexact)};
}

Result<Tokens> tokens_of_text(const prompt::Preprocessor& preprocessor,
                              const TokenizeOptions& options, const prompt::Rules& rules) {
  const auto text = read_text(options);
  if (!text) return fail(text.error());
  auto ids = prompt::as_result(preprocessor.tokenizer(rules).encode(
      *text, {.add_special =
                  options.no_special ? tokenizer::AddSpecial::No : tokenizer::AddSpecial::Yes}));
  if (!ids) return fail(std::move(ids.error()));
  return Tokens{*std::move(ids), {}};
}

Result<prompt::Rules> rules_for(const TokenizeOptions& options) {
  const auto engine = model::parse_engine(options.engine);
  if (!engine) return fail(Errc::InvalidRequest, "--engine must be vllm, sglang or trtllm");
  if (options.release.empty()) return prompt::rules_of(*engine, std::nullopt);
  const auto release = model::parse_version(options.release);
  if (!release) return fail(Errc::InvalidRequest, "--release must be like 0.32.0");
  return prompt::rules_of(*engine, *release);
}

Result<void> tokenize(const TokenizeOptions& options) {
  const auto rules = rules_for(options);
  if (!rules) return fail(rules.error());
  const auto preprocessor =
      prompt::Preprocessor::load({.folder = options.model, .chat_template = options.chat_template});
  if (!preprocessor) return fail(preprocessor.error());
  Result<Tokens> tokens;
  if (options.chat.empty()) {
    tokens = tokens_of_text(**preprocessor, options, *rules);
  } else {
    const auto text = read_chat(options);
    if (!text) return fail(text.error());
    const auto body = wire::JsonObject::parse(*text);
    if (!body) return fail(body.error());
    const prompt::RenderContext context{.now = std::chrono::system_clock::now(), .rules = *rules};
    if (options.render) {
      const auto rendered = (*preprocessor)->rendered(*body, context);
      if (!rendered) return fail(rendered.error());
      std::fwrite(rendered->data(), 1, rendered->size(), stdout);
      return {};
    }
    tokens = tokens_of_chat(**preprocessor, *body, context);
  }
  if (!tokens) return fail(tokens.error());
  if (!tokens->inexact.empty())
    fmt::print(stderr, "baton: not what the engine will see: {}\n", tokens->inexact);
  fmt::print(stderr, "baton: rules of {} {}: {}\n", options.engine,
             options.release.empty() ? "(newest)" : options.release, prompt::to_string(*rules));
  if (options.json) {
    fmt::print("{{\"tokens\": [{}]}}\n", fmt::join(tokens->ids, ", "));
  } else {
    print_table((*preprocessor)->tokenizer(), tokens->ids);
  }
  return {};
}

}  // namespace

CLI::App* add_tokenize_command(CLI::App& root, TokenizeOptions& options) {
  CLI::App* command =
      root.add_subcommand("tokenize", "Show the tokens that a model makes of a text or a chat");
  command
      ->add_option("-m,--model", options.model,
                   "Folder with the model's tokenizer.json and chat template")
      ->required();
  command->add_option("--chat-template", options.chat_template,
                      "Another chat template than the folder's");
  auto* const file = command->add_option("-f,--file", options.file,
                                         "File with the text; without it, standard input");
  auto* const chat = command->add_option("--chat", options.chat, "File with a chat (JSON)");
  command->add_option("--engine", options.engine, "Whose rules apply: vllm, sglang or trtllm")
      ->capture_default_str();
  command->add_option("--release", options.release,
                      "Release of the engine, as 0.32.0; without it, the newest");
  command->add_flag("--no-special", options.no_special,
                    "Without the tokens a tokenizer adds around a text (as chats always are)");
  command->add_flag("--render", options.render, "Print the text that the chat template makes")
      ->needs(chat);
  command->add_flag("--json", options.json, "Print {\"tokens\": […]}");
  chat->excludes(file);
  command->footer(std::string(kTokenizeExamples));
  return command;
}

int run_tokenize_command(const TokenizeOptions& options) {
  const auto done = tokenize(options);
  if (done) return 0;
  fmt::print(stderr, "baton: {}\n", done.error().message());
  return 1;
}

}  // namespace baton::cli
