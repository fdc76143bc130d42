// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace baton::tokenizer {

// Members that an object of one type may have beside its type: all that Hugging Face's library
// writes or once wrote, also those that change no token. Unused names are empty.
struct KnownMembers {
  static constexpr std::size_t kMost = 6;
  std::string_view type;
  std::array<std::string_view, kMost> names = {};
};

// The first member that is none of `known`. An unknown one may change tokens, so the callers
// refuse it.
inline std::optional<std::string_view> find_unknown_member(
    simdjson::dom::object object, std::span<const std::string_view> known) {
  for (const auto& member : object) {
    if (member.key.empty() || std::ranges::find(known, member.key) == known.end()) {
      return member.key;
    }
  }
  return std::nullopt;
}

// The same for an object of the type. One that the table lacks is the caller's to refuse.
inline std::optional<std::string_view> find_unknown_member(simdjson::dom::object object,
                                                           std::string_view type,
                                                           std::span<const KnownMembers> table) {
  const auto row = std::ranges::find(table, type, &KnownMembers::type);
  if (row == table.end()) {
    return std::nullopt;
  }
  std::array<std::string_view, KnownMembers::kMost + 1> known = {"type"};
  std::ranges::copy(row->names, known.begin() + 1);
  return find_unknown_member(object, known);
}

}  // namespace baton::tokenizer
