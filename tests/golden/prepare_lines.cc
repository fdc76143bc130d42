// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors

// Baton's prompts for comparisons with engines: one JSON request and one JSON answer a line.
//   prepare_lines FOLDER ENGINE RELEASE [TEMPLATE] <requests >answers
// {"api": "chat" or "completions", "body": JSON as text} gives {"ids": […], "text": …} (the text of
// chats only), with "inexact" where Baton says so, or {"error": …}.

#include "model/version.h"
#include "model/worker.h"
#include "prompt/preprocessor.h"
#include "wire/json_object.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>
#include <string>

namespace baton::prompt {
namespace {

using nlohmann::json;

json answer(const Preprocessor& preprocessor, const Rules& rules, const json& request) {
  const std::string text = request.at("body").get<std::string>();
  const auto body = wire::JsonObject::parse(text);
  if (!body) return {{"error", body.error().message()}};
  const RenderContext context{.now = std::chrono::system_clock::now(), .rules = rules};
  const bool chat = request.at("api") == "chat";
  const auto prepared =
      chat ? preprocessor.chat(*body, context) : preprocessor.completion(*body, context);
  if (!prepared) return {{"error", prepared.error().message()}};
  json made;
  if (!prepared->exact()) made["inexact"] = prepared->inexact;
  if (!prepared->prompts.empty()) made["ids"] = prepared->prompts.front();
  if (chat && prepared->exact()) {
    if (const auto rendered = preprocessor.rendered(*body, context)) made["text"] = *rendered;
  }
  return made;
}

int serve(char** arguments, int count) {
  const auto engine = model::parse_engine(arguments[2]);
  const auto release = model::parse_version(arguments[3]);
  if (!engine || !release) {
    fmt::print(stderr, "ENGINE is vllm or sglang, RELEASE is like 0.32.0\n");
    return 2;
  }
  const auto preprocessor =
      Preprocessor::load({.folder = arguments[1], .chat_template = count > 4 ? arguments[4] : ""});
  if (!preprocessor) {
    fmt::print(stderr, "{}\n", preprocessor.error().message());
    return 3;
  }
  const Rules rules = rules_of(*engine, release);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << answer(**preprocessor, rules, json::parse(line))
                     .dump(-1, ' ', false, json::error_handler_t::replace)
              << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace baton::prompt

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr,
               "usage: prepare_lines FOLDER ENGINE RELEASE [TEMPLATE] <requests >answers\n");
    return 2;
  }
  return baton::prompt::serve(argv, argc);
}
