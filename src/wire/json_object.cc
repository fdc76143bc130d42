// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_object.h"

#include "wire/json_text.h"

#include <fmt/format.h>

#include <charconv>
#include <ranges>
#include <utility>

namespace baton::wire {
namespace {

constexpr std::size_t kUsualMembers = 12;

// The place in the structure behind the value that begins at `at` of it.
std::size_t past_value(std::string_view text, Structure structure, std::size_t at) {
  std::size_t depth = 0;
  do {
    const char c = text[structure[at++]];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
  } while (depth > 0);
  return at;
}

// End of the text before a part of the structure, without the white space in front of it.
std::size_t end_before(std::string_view text, std::size_t place) {
  return text.find_last_not_of(" \t\r\n", place - 1) + 1;
}

}  // namespace

Result<JsonObject> JsonObject::parse(std::string_view text, MemoryShare* memory) {
  JsonObject object;
  object.text_ = text;
  bool complete = true;
  auto valid = validate_json_object(
      text, [&](Structure found) { complete = object.add_members(found); }, memory);
  if (!valid) return fail(std::move(valid.error()));
  if (!complete) {
    return fail(Error(Errc::InvalidRequest,
                      fmt::format("request body has more than {} members", kMostMembers))
                    .with_limit(Limit::JsonMembers));
  }
  return object;
}

// Goes from place to place of the structure, so that long values are not read once more.
bool JsonObject::add_members(std::span<const std::uint32_t> structure) {
  members_.reserve(kUsualMembers);
  bool escaped = false;
  std::size_t at = 1;  // behind the opening bracket
  while (text_[structure[at]] != '}') {
    if (members_.size() == kMostMembers) return false;
    const std::size_t colon = at + 1;
    const std::size_t behind = past_value(text_, structure, at + 2);
    const std::size_t begin = structure[at];
    const std::string_view key =
        text_.substr(begin + 1, end_before(text_, structure[colon]) - begin - 2);
    escaped = escaped || key.contains('\\');
    members_.push_back({.name = key,
                        .begin = begin,
                        .value = structure[at + 2],
                        .end = end_before(text_, structure[behind])});
    at = text_[structure[behind]] == ',' ? behind + 1 : behind;
  }
  if (escaped) unescape_names();
  return true;
}

std::optional<JsonObject> JsonObject::within(std::string_view text) {
  if (!text.starts_with('{') && text[skip_space(text, 0)] != '{') return std::nullopt;
  JsonObject object;
  object.text_ = text;
  object.members_.reserve(kUsualMembers);
  bool escaped = false;
  std::size_t at = skip_space(text, skip_space(text, 0) + 1);
  while (text[at] != '}') {
    if (object.members_.size() == kMostMembers) return std::nullopt;
    Member member;
    member.begin = at;
    const StringAt key = string_at(text, at);
    member.name = key.raw;
    escaped = escaped || key.escaped;
    const std::size_t colon = skip_space(text, key.end);
    member.value = skip_space(text, colon + 1);
    member.end = skip_value(text, member.value);
    object.members_.push_back(member);
    at = skip_space(text, member.end);
    if (text[at] == ',') at = skip_space(text, at + 1);
  }
  if (escaped) object.unescape_names();
  return object;
}

// Once and for all: each look-up compares with every name.
void JsonObject::unescape_names() {
  const auto is_escaped = [](const Member& member) { return member.name.contains('\\'); };
  std::size_t room = 0;
  for (const Member& member : members_ | std::views::filter(is_escaped)) room += member.name.size();
  auto names = std::make_shared_for_overwrite<char[]>(room);
  char* to = names.get();
  for (Member& member : members_ | std::views::filter(is_escaped)) {
    const char* const begin = to;
    std::size_t at = 0;
    to = unescape_to(to, member.name, at);
    member.name = {begin, to};
  }
  unescaped_ = std::move(names);
}

std::optional<std::string_view> JsonObject::find(std::string_view key) const {
  for (const Member& member : members_ | std::views::reverse) {
    if (member.name == key) return text_.substr(member.value, member.end - member.value);
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
  constexpr std::size_t kMostDigits = 20;  // and a sign or a digit: JSON has no leading zeros
  const auto raw = find(key);
  if (!raw || raw->size() > kMostDigits) return std::nullopt;
  std::int64_t value = 0;
  const char* end = raw->data() + raw->size();
  const auto [stopped, error] = std::from_chars(raw->data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace baton::wire
