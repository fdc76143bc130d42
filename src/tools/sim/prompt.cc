// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/prompt.h"

#include "tools/sim/answer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace baton::sim {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<std::string> content_text(const json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    return fail(Errc::InvalidRequest, "messages: content must be a string or a list of parts");
  }
  std::string joined;
  for (const json& part : *content) {
    if (text_at(part, "type") == "text") joined += text_at(part, "text");
  }
  return joined;
}

void append_tool_calls(const json& message, std::vector<TokenId>& out) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (const json& call : *calls) {
    if (!call.is_object() || !call.contains("function")) continue;
    append_tokens(text_at(call["function"], "name"), out);
    append_tokens(text_at(call["function"], "arguments"), out);
  }
}

void append_tools(const json& body, std::vector<TokenId>& out) {
  const auto tools = body.find("tools");
  if (tools == body.end() || !tools->is_array() || tools->empty()) return;
  out.push_back(token_of("<|tools|>"));
  for (const json& tool : *tools) {
    if (tool.is_object() && tool.contains("function")) {
      append_tokens(text_at(tool["function"], "name"), out);
    }
  }
  out.push_back(token_of("<|end|>"));
}

}  // namespace

Result<std::vector<TokenId>> chat_prompt(const json& body) {
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array() || messages->empty()) {
    return fail(Errc::InvalidRequest, "messages: a non-empty list is required");
  }
  std::vector<TokenId> tokens;
  append_tools(body, tokens);
  for (const json& message : *messages) {
    const std::string role = text_at(message, "role");
    if (role.empty()) return fail(Errc::InvalidRequest, "messages: role is required");
    const Result<std::string> text = content_text(message);
    if (!text) return fail(text.error());
    tokens.push_back(token_of(fmt::format("<|{}|>", role)));
    append_tokens(*text, tokens);
    append_tool_calls(message, tokens);
    tokens.push_back(token_of("<|end|>"));
  }
  tokens.push_back(token_of("<|assistant|>"));
  return tokens;
}

Result<std::vector<TokenId>> token_list(const json& list, std::string_view field) {
  std::vector<TokenId> tokens;
  tokens.reserve(list.size());
  for (const json& entry : list) {
    if (!entry.is_number_unsigned() ||
        entry.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()) {
      return fail(Errc::InvalidRequest, fmt::format("{}: token ids must be integers", field));
    }
    tokens.push_back(entry.get<TokenId>());
  }
  if (tokens.empty())
    return fail(Errc::InvalidRequest, fmt::format("{}: must not be empty", field));
  return tokens;
}

Result<std::vector<std::vector<TokenId>>> completion_prompts(const json& prompt) {
  std::vector<std::vector<TokenId>> prompts;
  const auto add = [&prompts](const json& one) -> Result<void> {
    std::vector<TokenId> tokens;
    if (one.is_string()) {
      append_tokens(one.get_ref<const std::string&>(), tokens);
      if (tokens.empty()) return fail(Errc::InvalidRequest, "prompt: must not be empty");
    } else if (one.is_array()) {
      auto ids = token_list(one, "prompt");
      if (!ids) return fail(ids.error());
      tokens = std::move(*ids);
    } else {
      return fail(Errc::InvalidRequest, "prompt: must be text, token ids or a list of either");
    }
    prompts.push_back(std::move(tokens));
    return {};
  };

  const bool is_list = prompt.is_array() && !prompt.empty() && !prompt.front().is_number();
  if (!is_list) {
    if (const auto added = add(prompt); !added) return fail(added.error());
    return prompts;
  }
  for (const json& one : prompt) {
    if (const auto added = add(one); !added) return fail(added.error());
  }
  return prompts;
}

}  // namespace baton::sim
