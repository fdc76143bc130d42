// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_object.h"

#include "wire/json_text.h"

#include <charconv>
#include <ranges>

namespace baton::wire {
namespace {

constexpr std::size_t kUsualMembers = 12;

}  // namespace

Result<JsonObject> JsonObject::parse(std::string_view text) {
  if (auto valid = validate_json_object(text); !valid) return fail(std::move(valid.error()));
  return *within(text);
}

std::optional<JsonObject> JsonObject::within(std::string_view text) {
  if (!text.starts_with('{') && text[skip_space(text, 0)] != '{') return std::nullopt;
  JsonObject object;
  object.text_ = text;
  object.members_.reserve(kUsualMembers);
  std::size_t at = skip_space(text, skip_space(text, 0) + 1);
  while (text[at] != '}') {
    Member member;
    member.begin = at;
    const StringAt key = string_at(text, at);
    member.key = key.raw;
    member.escaped = key.escaped;
    const std::size_t colon = skip_space(text, key.end);
    member.value = skip_space(text, colon + 1);
    member.end = skip_value(text, member.value);
    object.members_.push_back(member);
    at = skip_space(text, member.end);
    if (text[at] == ',') at = skip_space(text, at + 1);
  }
  return object;
}

std::optional<std::string_view> JsonObject::find(std::string_view key) const {
  for (const Member& member : members_ | std::views::reverse) {
    if (names(member, key)) return text_.substr(member.value, member.end - member.value);
  }
  return std::nullopt;
}

std::optional<JsonObject> JsonObject::find_object(std::string_view key) const {
  const auto raw = find(key);
  return raw ? within(*raw) : std::nullopt;
}

std::optional<std::string> JsonObject::find_string(std::string_view key) const {
  const auto raw = find(key);
  if (!raw || !raw->starts_with('"')) return std::nullopt;
  return unescape(raw->substr(1, raw->size() - 2));
}

std::optional<bool> JsonObject::find_bool(std::string_view key) const {
  const auto raw = find(key);
  if (raw == "true") return true;
  if (raw == "false") return false;
  return std::nullopt;
}

std::optional<std::int64_t> JsonObject::find_integer(std::string_view key) const {
  const auto raw = find(key);
  if (!raw) return std::nullopt;
  std::int64_t value = 0;
  const char* end = raw->data() + raw->size();
  const auto [stopped, error] = std::from_chars(raw->data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

bool JsonObject::names(const Member& member, std::string_view key) {
  return member.escaped ? unescape(member.key) == key : member.key == key;
}

}  // namespace baton::wire
