// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/usage_total.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::engine {
namespace {

using Counts = nlohmann::ordered_json;

// An engine's counts are added up; one that is out of its mind must not overflow them.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;
constexpr int kDeepest = 8;

std::int64_t sane(const Counts& count) {
  if (count.is_number_unsigned() && count.get<std::uint64_t>() > std::uint64_t{kMostTokens})
    return kMostTokens;
  return std::clamp<std::int64_t>(count.get<std::int64_t>(), 0, kMostTokens);
}

// NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepest.
void add(Counts& total, const Counts& more, int depth = 0) {
  if (total.is_null()) {
    total = more;
  } else if (total.is_number_integer() && more.is_number_integer()) {
    total = sane(total) + sane(more);
  } else if (total.is_object() && more.is_object() && depth < kDeepest) {
    for (const auto& [key, value] : more.items()) add(total[key], value, depth + 1);
  }
}

bool tells_of_prompt(std::string_view key) { return key.starts_with("prompt_"); }

}  // namespace

std::string total_usage(std::span<const std::string> branches, std::size_t choices_per_prompt) {
  Counts total;
  std::optional<std::size_t> counted;  // the last prompt that was
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const Counts usage = Counts::parse(branches[i], nullptr, false);
    if (!usage.is_object()) continue;
    if (total.is_null()) total = Counts::object();
    const std::size_t prompt = i / std::max<std::size_t>(choices_per_prompt, 1);
    for (const auto& [key, value] : usage.items()) {
      if (counted != prompt || !tells_of_prompt(key)) add(total[key], value);
    }
    counted = prompt;
  }
  if (total.is_null()) return {};
  // A prompt of several choices counts once in it, too.
  const auto count = [&total](const char* key) {
    return total.contains(key) && total[key].is_number_integer() ? sane(total[key]) : 0;
  };
  total["total_tokens"] = count("prompt_tokens") + count("completion_tokens");
  return total.dump(-1, ' ', false, Counts::error_handler_t::replace);
}

}  // namespace baton::engine
