// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "scheduling/policy/constraints.h"
#include "scheduling/policy/cost_override.h"
#include "wire/json_object.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::scheduling {

// Longest id of a worker, session, tenant or taint, and the most of them in a list: a request must
// not make Baton hold or compare much.
inline constexpr std::size_t kMaxIdBytes = 256;
inline constexpr std::size_t kMaxIds = 1024;

// Worker hints in the body's `nvext`.
struct BodyHints {
  std::optional<std::string> backend_worker;
  std::optional<std::string> prefill_worker;
  std::optional<std::string> decode_worker;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> prefill_rank;
  std::optional<std::vector<std::string>> allowed;
  Constraints constraints;
  CostOverride cost;
  std::optional<std::int32_t> priority;
  std::optional<std::uint32_t> strict_priority;
  std::optional<std::uint32_t> expected_output;  // tokens of the answer
  bool query_only = false;
};

// Names a hint of the wrong shape (InvalidRouting); null counts as absent.
Result<BodyHints> read_body_hints(const wire::JsonObject& body);

// A rank as text; nothing for the number that means "unset". `source` is for messages.
Result<std::optional<std::uint32_t>> parse_rank(std::string_view text, std::string_view source);

}  // namespace baton::scheduling
