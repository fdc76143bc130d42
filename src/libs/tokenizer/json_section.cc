// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/json_section.h"

#include <fmt/format.h>

#include <utility>

namespace baton::tokenizer {

Result<JsonSection> JsonSection::of(simdjson::dom::element json, std::string name) {
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS) {
    return fail(ErrorCode::InvalidFile, fmt::format("{} is not an object", name));
  }
  return JsonSection(object, std::move(name));
}

std::unexpected<Error> JsonSection::wrong(std::string_view message) const {
  return fail(ErrorCode::InvalidFile, fmt::format("{}: {}", name_, message));
}

std::unexpected<Error> JsonSection::expected(std::string_view key, std::string_view what) const {
  return wrong(fmt::format("\"{}\" is not {}", key, what));
}

std::optional<simdjson::dom::element> JsonSection::find(std::string_view key) const {
  simdjson::dom::element found;
  if (object_.at_key(key).get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
  return found;
}

Result<bool> JsonSection::flag(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  if (!found) return otherwise;
  bool value = false;
  if (found->get(value) != simdjson::SUCCESS) return expected(key, "true or false");
  return value;
}

Result<std::optional<std::string_view>> JsonSection::find_text(std::string_view key) const {
  const auto found = find(key);
  if (!found) return std::nullopt;
  std::string_view value;
  if (found->get(value) != simdjson::SUCCESS) return expected(key, "a string");
  return value;
}

Result<std::string_view> JsonSection::text(std::string_view key) const {
  auto found = find_text(key);
  if (!found) return fail(std::move(found.error()));
  if (!*found) return wrong(fmt::format("\"{}\" is missing", key));
  return **found;
}

Result<std::uint32_t> JsonSection::number(std::string_view key) const {
  const auto found = find(key);
  std::uint64_t value = 0;
  if (!found) return wrong(fmt::format("\"{}\" is missing", key));
  if (found->get(value) != simdjson::SUCCESS || value > 0xFFFF'FFFFULL) {
    return expected(key, "a whole number that fits");
  }
  return static_cast<std::uint32_t>(value);
}

Result<simdjson::dom::array> JsonSection::array(std::string_view key) const {
  const auto found = find(key);
  simdjson::dom::array value;
  if (!found) return wrong(fmt::format("\"{}\" is missing", key));
  if (found->get(value) != simdjson::SUCCESS) return expected(key, "a list");
  return value;
}

Result<JsonSection> JsonSection::section(std::string_view key) const {
  const auto found = find(key);
  if (!found) return wrong(fmt::format("\"{}\" is missing", key));
  return of(*found, fmt::format("{}.{}", name_, key));
}

Result<void> JsonSection::only(std::initializer_list<std::string_view> keys) const {
  const auto unknown = find_unknown_member(object_, {keys.begin(), keys.end()});
  if (!unknown) return {};
  return wrong(fmt::format("\"{}\" is not known to Baton", *unknown));
}

Result<void> JsonSection::only(std::string_view type, std::span<const KnownMembers> table) const {
  const auto unknown = find_unknown_member(object_, type, table);
  if (!unknown) return {};
  return wrong(fmt::format("\"{}\" of {} is not known to Baton", *unknown, type));
}

}  // namespace baton::tokenizer
