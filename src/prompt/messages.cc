// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/messages.h"

#include "prompt/content_parts.h"
#include "prompt/members.h"
#include "prompt/refusal.h"
#include "prompt/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::prompt {
namespace {

using namespace std::string_view_literals;

using jinja::Dict;
using jinja::List;
using jinja::Value;

bool is_text_part(const Value& part) {
  if (!part.is_dict()) return false;
  const Value* const type = part.as_dict().find("type"sv);
  return type && type->is_string() && type->as_string() == "text";
}

// The text of a system message, of which several are merged into one.
std::string text_of(const Value& content) {
  if (content.is_string()) return std::string(content.as_string());
  std::string joined;
  if (!content.is_list()) return joined;
  bool first = true;
  for (const Value& part : content.as_list()) {
    const Value* const text = part.is_dict() ? part.as_dict().find("text"sv) : &part;
    if (!text || !text->is_string()) continue;
    if (!std::exchange(first, false)) joined += '\n';
    joined += text->as_string();
  }
  return joined;
}

bool has_role(const Value& message, std::string_view name) {
  const Value* const role = message.as_dict().find("role"sv);
  return role && role->is_string() && role->as_string() == name;
}

// Results of tools are text for most templates, also for those that want parts.
Value flattened(const Value& content) {
  if (!content.is_list()) return content;
  const List& parts = content.as_list();
  if (!std::ranges::all_of(parts, is_text_part)) return content;
  std::string joined;
  for (const Value& part : parts) {
    if (&part != &parts.front()) joined += '\n';
    const Value* const text = part.as_dict().find("text"sv);
    if (text && text->is_string()) joined += text->as_string();
  }
  return joined;
}

// Most messages are just a role and a text, and need little rebuilding or none. Nothing for others.
std::optional<Value> role_and_text(const Value& message, ContentFormat format, const Rules& rules) {
  const std::vector<Dict::Entry>& entries = message.as_dict().entries();
  if (entries.size() != 2) return std::nullopt;
  const bool in_order = entries[0].key.as_string() == "role";
  const Dict::Entry& role = entries[in_order ? 0 : 1];
  const Dict::Entry& content = entries[in_order ? 1 : 0];
  const bool fits = role.key.as_string() == "role" && role.value.is_string() &&
                    content.key.as_string() == "content" && content.value.is_string();
  if (!fits) return std::nullopt;
  const std::string_view name = role.value.as_string();
  if (name == "developer") return std::nullopt;
  if (name == "system" && rules.drops_billing_header &&
      without_billing_header(content.value.as_string())) {
    return std::nullopt;
  }
  const bool parts = format == ContentFormat::Parts && rules.texts_in_parts && name != "tool";
  if (in_order && !parts) return message;
  Dict out;
  out.reserve(2);
  out.set(role.key, role.value);
  out.set(content.key, parts ? in_parts(content.value) : content.value);
  return Value(std::move(out));
}

class ConversationReader {
 public:
  ConversationReader(ContentFormat format, const Rules& rules, std::size_t messages)
      : format_(format), rules_(rules) {
    conversation_.messages.reserve(messages);
  }

  Result<void> add(const Value& value);
  Conversation finish() && { return std::move(conversation_); }

 private:
  Result<void> add_assistant_members(const Dict& message, std::size_t index, Dict& out);
  void note(std::string reason) {
    if (conversation_.inexact.empty()) conversation_.inexact = std::move(reason);
  }

  ContentFormat format_;
  const Rules& rules_;
  Conversation conversation_;
};

Result<void> ConversationReader::add_assistant_members(const Dict& message, std::size_t index,
                                                       Dict& out) {
  if (const Value* const calls = find_present(message, "tool_calls")) {
    auto reshaped = tool_calls_of(*calls, index);
    if (!reshaped) return fail(reshaped.error());
    note(std::move(reshaped->inexact));
    // Without calls a template must take the path of an ordinary answer.
    if (!reshaped->calls.empty()) out.set("tool_calls"sv, Value(std::move(reshaped->calls)));
  }
  const Value* reasoning = find_present(message, "reasoning");
  if (!reasoning) reasoning = find_present(message, "reasoning_content");
  if (reasoning) {
    out.set("reasoning"sv, *reasoning);
    out.set("reasoning_content"sv, *reasoning);
  }
  return {};
}

Result<void> ConversationReader::add(const Value& value) {
  const std::size_t index = conversation_.messages.size();
  if (!value.is_dict()) return refuse(fmt::format("messages[{}]", index), "must be an object");
  if (auto simple = role_and_text(value, format_, rules_)) {
    conversation_.messages.push_back(*std::move(simple));
    return {};
  }
  const Dict& message = value.as_dict();
  const Value* const role = message.find("role"sv);
  if (!role || !role->is_string()) {
    return refuse(fmt::format("messages[{}].role", index), "must be a string");
  }
  const std::string_view name = role->as_string();
  auto content = content_of(
      message.find("content"sv),
      {.format = format_, .message = index, .of_system = name == "system", .rules = rules_});
  if (!content) return fail(content.error());
  note(std::move(content->inexact));

  Dict out;
  out.reserve(6);
  out.set("role"sv, *role);
  out.set("content"sv, name == "tool" ? flattened(content->value) : std::move(content->value));
  if (name == "assistant") {
    if (auto added = add_assistant_members(message, index, out); !added) return added;
  } else if (name == "tool") {
    if (const Value* const id = message.find("tool_call_id"sv)) out.set("tool_call_id"sv, *id);
  }
  for (const std::string_view key : {"name", "task"}) {
    const Value* const text = message.find(key);
    if (text && text->is_string()) out.set(key, *text);
  }
  if (name == "developer") {
    const Value* const tools = message.find("tools"sv);
    out.set("tools"sv, tools ? *tools : Value::none());
  }
  conversation_.messages.emplace_back(std::move(out));
  return {};
}

}  // namespace

Result<Conversation> conversation_of(const Value& messages, ContentFormat format,
                                     const Rules& rules) {
  if (!messages.is_list()) return refuse("messages", "must be a list");
  ConversationReader reader(format, rules, messages.as_list().size());
  for (const Value& message : messages.as_list()) {
    if (auto added = reader.add(message); !added) return fail(added.error());
  }
  return std::move(reader).finish();
}

bool names_developers(std::string_view source) {
  return source.contains(R"("developer")") || source.contains("'developer'");
}

void developers_to_system(List& messages) {
  const auto is_developer = [](const Value& message) { return has_role(message, "developer"); };
  if (std::ranges::none_of(messages, is_developer)) return;
  List others;
  std::string merged;
  bool several = false;
  for (std::size_t at = 0; at < messages.size(); ++at) {
    if (is_developer(messages[at])) {
      Dict changed;
      for (const auto& [key, value] : messages[at].as_dict()) {
        if (key.as_string() != "tools") changed.set(key, value);
      }
      changed.set("role"sv, Value("system"));
      messages[at] = Value(std::move(changed));
    }
    if (!has_role(messages[at], "system")) {
      others.push_back(messages[at]);
      continue;
    }
    several = several || at > 0;
    const std::string text = text_of(*messages[at].as_dict().find("content"sv));
    if (!text.empty() && !merged.empty()) merged += "\n\n";
    merged += text;
  }
  if (!several) return;
  Dict system;
  system.set("role"sv, Value("system"));
  system.set("content"sv, Value(std::move(merged)));
  messages.clear();
  messages.emplace_back(std::move(system));
  messages.insert(messages.end(), others.begin(), others.end());
}

}  // namespace baton::prompt
