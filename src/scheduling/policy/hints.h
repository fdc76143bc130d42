// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "scheduling/policy/constraints.h"
#include "scheduling/policy/cost_override.h"
#include "scheduling/policy/trust.h"
#include "wire/http_message.h"
#include "wire/json_object.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::scheduling {

// Baton's names; Dynamo's and older ones mean the same.
inline constexpr std::string_view kWorkerHeader = "x-baton-worker-instance-id";
inline constexpr std::string_view kPrefillWorkerHeader = "x-baton-prefill-instance-id";
inline constexpr std::string_view kRankHeader = "x-baton-dp-rank";
inline constexpr std::string_view kPrefillRankHeader = "x-baton-prefill-dp-rank";
inline constexpr std::string_view kSessionHeader = "x-baton-session-id";

// A worker, and of a worker with several ranks which one.
struct Pin {
  std::string worker;  // its id, host:port or number
  std::optional<std::uint32_t> rank;
  bool operator==(const Pin&) const = default;
};

// A request's routing hints, from headers and, if they are silent, from the body's `nvext`.
struct Hints {
  std::optional<Pin> prefill;                       // the worker of the prefill leg
  std::optional<Pin> decode;                        // of the decode leg, or of the only one
  std::optional<std::vector<std::string>> allowed;  // no other worker; empty: none at all
  Constraints constraints;
  CostOverride cost;
  bool query_only = false;  // answer which workers would serve, and send nothing
  std::optional<std::int32_t> priority;
  std::optional<std::uint32_t> strict_priority;
  std::optional<std::uint32_t> expected_output;  // tokens of the answer
  std::string tenant;
  std::map<std::string, std::string, std::less<>> metadata;  // names in lower case
  std::string request_id;
  // Preferences, not choices: accepted from every client.
  std::string session_id;
  std::string parent_session_id;
  bool session_final = false;
  bool operator==(const Hints&) const = default;
};

// `session_fields` are body fields that name the session if no header does (session_id, user).
// Without trust all but the session's fields are left out unread. The error for an impossible hint
// (InvalidRouting) names the header or field.
Result<Hints> read_hints(const wire::Headers& headers, const wire::JsonObject& body,
                         Trusted trusted, std::span<const std::string> session_fields = {});

}  // namespace baton::scheduling
