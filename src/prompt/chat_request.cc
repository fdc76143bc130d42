// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/chat_request.h"

#include "prompt/members.h"
#include "prompt/refusal.h"
#include "prompt/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace baton::prompt {
namespace {

using namespace std::string_view_literals;

using jinja::Dict;
using jinja::Value;

// Arguments of the function that renders, which are therefore no variables of the template. Those
// about the generation prompt are taken from the request itself.
constexpr std::string_view kNotVariables[] = {"conversation",     "tokenize",
                                              "padding",          "truncation",
                                              "max_length",       "return_dict",
                                              "return_tensors",   "return_assistant_tokens_mask",
                                              "chat_template",    "tools",
                                              "documents",        "add_generation_prompt",
                                              "tokenizer_kwargs", "continue_final_message"};

// A member of the body; nullopt where it is absent or null.
Result<std::optional<Value>> member(const wire::JsonObject& body, std::string_view key) {
  if (!is_given(body, key)) return std::nullopt;
  auto value = jinja::value_within_json(*body.find(key));
  if (!value) return refuse(std::string(key), value.error().message());
  return std::move(*value);
}

// vLLM takes these two for "not given".
bool is_unset(const Value& value) {
  return value.is_none() || (value.is_string() && value.as_string() == "auto");
}

Result<void> read_tools(const wire::JsonObject& body, const Rules&, ChatRequest& request) {
  const auto sent = member(body, "tools");
  if (!sent) return fail(sent.error());
  if (!*sent) return {};
  auto tools = tools_of(**sent);
  if (!tools) return fail(tools.error());
  if (tools->as_list().empty()) {
    request.inexact = "tools is an empty list, which engines read differently";
  } else {
    request.tools = std::move(*tools);
  }
  return {};
}

Result<void> read_documents(const Value& documents, std::string place, ChatRequest& request) {
  const bool fits =
      documents.is_list() && std::ranges::all_of(documents.as_list(), &Value::is_dict);
  if (!fits) return refuse(std::move(place), "must be a list of objects");
  request.documents = documents;
  return {};
}

Result<void> read_kwargs(const Dict& kwargs, const Rules& rules, ChatRequest& request) {
  for (const auto& [key, value] : kwargs) {
    const std::string_view name = key.as_string();
    if (name == "messages") return refuse("chat_template_kwargs.messages", "cannot be set");
    if (is_unset(value)) {
      const bool argument = std::ranges::find(kNotVariables, name) != std::end(kNotVariables);
      if (rules.keeps_unset_variables && !argument) request.kwargs.set(key, value);
      continue;
    }
    if (name == "chat_template") request.brings_template = true;
    if (name == "tools") request.tools = value;
    if (name == "documents") {
      auto read = read_documents(value, "chat_template_kwargs.documents", request);
      if (!read) return read;
    }
    if (std::ranges::find(kNotVariables, name) == std::end(kNotVariables))
      request.kwargs.set(key, value);
  }
  return {};
}

// `reasoning_effort` is a variable, and switches thinking for templates that know only that.
void set_effort(const Value& effort, bool thinking_is_set, ChatRequest& request) {
  request.kwargs.set("reasoning_effort"sv, effort);
  if (thinking_is_set) return;
  const bool none = effort.is_string() && effort.as_string() == "none";
  request.kwargs.set("enable_thinking"sv, Value(!none));
}

// The members of the body go before those of chat_template_kwargs.
Result<void> read_variables(const wire::JsonObject& body, const Rules& rules,
                            ChatRequest& request) {
  const auto kwargs = member(body, "chat_template_kwargs");
  if (!kwargs) return fail(kwargs.error());
  bool thinking_is_set = false;
  if (*kwargs) {
    if (!(*kwargs)->is_dict()) return refuse("chat_template_kwargs", "must be an object");
    const Dict& entries = (*kwargs)->as_dict();
    thinking_is_set = entries.find("enable_thinking"sv) != nullptr;
    if (auto read = read_kwargs(entries, rules, request); !read) return read;
  }
  const auto documents = member(body, "documents");
  if (!documents) return fail(documents.error());
  if (*documents) {
    if (auto read = read_documents(**documents, "documents", request); !read) return read;
  }
  const auto effort = member(body, "reasoning_effort");
  if (!effort) return fail(effort.error());
  if (*effort) set_effort(**effort, thinking_is_set, request);
  return {};
}

Result<void> read_flags(const wire::JsonObject& body, const Rules&, ChatRequest& request) {
  const auto continues = flag(body, "continue_final_message", false);
  if (!continues) return fail(continues.error());
  // The two exclude each other. vLLM wants the second switched off by name, SGLang does not ask.
  const auto generates = flag(body, "add_generation_prompt", !*continues);
  if (!generates) return fail(generates.error());
  if (*continues && *generates) {
    return refuse("continue_final_message", "and add_generation_prompt cannot both be true");
  }
  const auto specials = flag(body, "add_special_tokens", false);
  if (!specials) return fail(specials.error());
  request.continue_final_message = *continues;
  request.add_generation_prompt = *generates;
  request.add_special = *specials ? tokenizer::AddSpecial::Yes : tokenizer::AddSpecial::No;
  return {};
}

// Some engines take the prompt as ids beside the messages, each under another name.
bool brings_ids(const wire::JsonObject& body) {
  if (is_given(body, "input_ids") || is_given(body, "prompt_token_ids")) return true;
  const auto transfer = body.find_object("kv_transfer_params");
  return transfer && is_given(*transfer, "prompt_token_ids");
}

}  // namespace

Result<ChatRequest> chat_request(const wire::JsonObject& body, const Rules& rules) {
  ChatRequest request;
  auto messages = member(body, "messages");
  if (!messages) return fail(messages.error());
  if (!*messages) return refuse("messages", "is missing");
  request.messages = std::move(**messages);
  if (request.messages.is_list() && request.messages.as_list().empty())
    return refuse("messages", "must not be empty");
  request.message_bytes = body.find("messages")->size();
  for (const auto read : {read_tools, read_variables, read_flags}) {
    if (auto done = read(body, rules, request); !done) return fail(done.error());
  }
  if (is_given(body, "chat_template")) request.brings_template = true;
  if (request.brings_template) request.inexact = "the request brings its own chat template";
  if (brings_ids(body)) request.inexact = "the request brings its own token ids";
  if (is_given(body, "truncate_prompt_tokens")) request.inexact = "truncate_prompt_tokens is set";
  return request;
}

Dict template_variables(const Dict& base, const ChatRequest& request, jinja::List messages) {
  Dict variables = base;
  for (const auto& [key, value] : request.kwargs) variables.set(key, value);
  variables.set("messages"sv, Value(std::move(messages)));
  variables.set("tools"sv, request.tools);
  variables.set("documents"sv, request.documents);
  variables.set("add_generation_prompt"sv, Value(request.add_generation_prompt));
  return variables;
}

}  // namespace baton::prompt
