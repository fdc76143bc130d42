// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace baton {

// The limits that a client's request or connection can run into. Those of a queue are
// scheduling::Turned.
enum class Limit {
  Connections,        // limits.connections
  ClientConnections,  // limits.client_connections
  ClientRequests,     // limits.client_requests
  ClientRate,         // limits.client_rate
  HeaderBytes,        // limits.header_bytes, of a request or an answer
  ClientHeader,       // timeouts.client_header
  BodyBytes,          // limits.body_bytes
  ClientBody,         // timeouts.client_body
  JsonMembers,        // at the top level of a body
  JsonDepth,
  FieldBytes,     // of single fields that every leg looks into
  ResponseBytes,  // limits.response_bytes
  ClientWrite,    // timeouts.client_write
  Request,        // timeouts.request, or the request's own
  Descriptors,    // ulimit -n
  Memory,         // limits.memory
};

inline constexpr std::size_t kLimits = static_cast<std::size_t>(Limit::Memory) + 1;

// The names used in metrics.
constexpr std::string_view to_string(Limit limit) {
  constexpr std::array<std::string_view, kLimits> kNames{
      "connections",   "client_connections", "client_requests", "client_rate",  "header_bytes",
      "client_header", "body_bytes",         "client_body",     "json_members", "json_depth",
      "field_bytes",   "response_bytes",     "client_write",    "request",      "descriptors",
      "memory"};
  return kNames[static_cast<std::size_t>(limit)];
}

}  // namespace baton
