// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/final_message.h"

#include "libs/jinja/unicode.h"
#include "prompt/members.h"
#include "prompt/refusal.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <utility>

namespace baton::prompt {
namespace {

using namespace std::string_view_literals;

using jinja::Dict;
using jinja::List;
using jinja::Value;

constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kTrimmedTag = kTag.substr(0, kTag.size() - 1);

// The same dictionary with one member changed.
Value changed(const Dict& dict, std::string_view key, Value value) {
  Dict copy = dict;
  copy.set(key, std::move(value));
  return copy;
}

Value tagged(std::string_view text) { return fmt::format("{}{}", text, kTag); }

}  // namespace

Result<std::string> tag_final_message(List& messages) {
  if (messages.empty()) return refuse("messages", "must not be empty to continue the last of them");
  const Value last = messages.back();
  const Dict& message = last.as_dict();
  const Value* const content = find_present(message, "content");
  if (content && content->is_string()) {
    std::string text(content->as_string());
    messages.back() = changed(message, "content", tagged(text));
    return text;
  }
  if (content && content->is_list()) {
    List parts = content->as_list();
    for (std::size_t left = parts.size(); left > 0; --left) {
      const Value part = parts[left - 1];
      const Value* const text = part.is_dict() ? part.as_dict().find("text"sv) : nullptr;
      if (!text || !text->is_string()) continue;
      std::string own(text->as_string());
      parts[left - 1] = changed(part.as_dict(), "text", tagged(own));
      messages.back() = changed(message, "content", Value(std::move(parts)));
      return own;
    }
  }
  return refuse(fmt::format("messages[{}].content", messages.size() - 1),
                "must have text, because continue_final_message is set");
}

Result<std::string> cut_at_tag(std::string rendered, std::string_view final_text) {
  const std::size_t at = rendered.rfind(kTrimmedTag);
  const std::string_view wanted = jinja::strip_right(jinja::strip_left(final_text));
  // Both are the client's: memmem's time grows with their lengths, not with their product.
  const bool kept =
      memmem(rendered.data(), rendered.size(), wanted.data(), wanted.size()) != nullptr;
  if (at == std::string::npos || !kept) {
    return refuse("continue_final_message",
                  "cannot be kept: the chat template leaves out the final message");
  }
  const bool trimmed = !std::string_view(rendered).substr(at).starts_with(kTag);
  rendered.resize(at);
  if (trimmed) rendered.resize(jinja::strip_right(rendered).size());
  return rendered;
}

}  // namespace baton::prompt
