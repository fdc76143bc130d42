// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/exactness.h"

#include "prompt/completion_prompts.h"
#include "prompt/members.h"

#include <fmt/format.h>

#include <string_view>

namespace baton::prompt {
namespace {

std::string differing_member(const jinja::Dict& message) {
  const jinja::Value* const role = message.find("role");
  if (role && role->is_string() && role->as_string() == "developer")
    return "messages of developers are kept by some engines and become the system's in others";
  const jinja::Value* const content = message.find("content");
  if (content && content->is_list()) return "content in parts is joined differently by each engine";
  if (content && message.size() == 2) return {};  // and the role
  for (const std::string_view key : {"tool_calls", "reasoning", "reasoning_content", "name", "task",
                                     "tools", "phase", "prefix"}) {
    if (find_present(message, key))
      return fmt::format("{} of a message is kept differently by each engine", key);
  }
  return {};
}

std::string read_differently(std::string_view field) {
  return fmt::format("{} is read differently by each engine", field);
}

// Requires: messages that make a conversation.
std::string difference_in(const ChatRequest& request, const wire::JsonObject& body) {
  if (!request.tools.is_none()) return "tools are written differently by each engine";
  for (const std::string_view field :
       {"tool_choice", "reasoning_effort", "reasoning", "thinking", "task", "documents",
        "add_special_tokens", "continue_final_message", "add_generation_prompt"}) {
    if (is_given(body, field)) return read_differently(field);
  }
  const jinja::List& messages = request.messages.as_list();
  for (const jinja::Value& message : messages) {
    if (auto why = differing_member(message.as_dict()); !why.empty()) return why;
  }
  if (messages.empty()) return {};
  const jinja::Value* const role = messages.back().as_dict().find("role");
  if (role && role->is_string() && role->as_string() == "assistant")
    return "a conversation that ends with an answer is continued differently by each engine";
  return {};
}

}  // namespace

Exactness exactness_of(const ChatRequest& request, const Conversation& conversation,
                       const wire::JsonObject& body) {
  return {.inexact = request.inexact.empty() ? conversation.inexact : request.inexact,
          .engines_differ = difference_in(request, body)};
}

Exactness chat_exactness(const wire::JsonObject& body) {
  const auto request = chat_request(body, {});
  if (!request) return {.inexact = request.error().message()};
  // The form is the template's, which the engine has; what is inexact is so in either.
  const auto conversation = conversation_of(request->messages, ContentFormat::Text, {});
  if (!conversation) return {.inexact = conversation.error().message()};
  return exactness_of(*request, *conversation, body);
}

Exactness completion_exactness(const wire::JsonObject& body) {
  constexpr std::string_view kSpecials = "add_special_tokens";
  return {.inexact = completion_inexact(body),
          .engines_differ = is_given(body, kSpecials) ? read_differently(kSpecials) : ""};
}

}  // namespace baton::prompt
