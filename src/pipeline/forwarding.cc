// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/forwarding.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace baton::pipeline {
namespace {

constexpr std::array<std::string_view, 9> kHopByHop{"connection",
                                                    "keep-alive",
                                                    "proxy-authenticate",
                                                    "proxy-authorization",
                                                    "proxy-connection",
                                                    "te",
                                                    "trailer",
                                                    "transfer-encoding",
                                                    "upgrade"};

// Ours to write, or meant for us.
constexpr std::array kNotForWorkers{std::string_view("host"),
                                    std::string_view("content-length"),
                                    std::string_view("expect"),
                                    std::string_view("accept-encoding"),
                                    std::string_view("x-request-id"),
                                    std::string_view("x-data-parallel-rank"),
                                    std::string_view("content-encoding"),
                                    std::string_view("content-type"),
                                    std::string_view("x-worker-instance-id"),
                                    std::string_view("x-prefill-instance-id"),
                                    std::string_view("x-dp-rank"),
                                    std::string_view("x-prefill-dp-rank"),
                                    std::string_view("x-tenant-id"),
                                    std::string_view("x-request-timeout-ms"),
                                    std::string_view("x-trtllm-disagg-auth")};
// Headers with the last prefix overwrite fields of the body, the hand-off's too, if SGLang heeds
// them.
constexpr std::array<std::string_view, 3> kInternalPrefixes{"x-baton-", "x-dynamo-", "x-override-"};

// Room for those that are added on the way to the client.
constexpr std::size_t kOwnHeaders = 4;
constexpr std::size_t kOwnHeaderBytes = 128;
constexpr std::array<std::string_view, 4> kNotForClients{"content-length", "x-request-id", "date",
                                                         "server"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  // Most differ in size already.
  return std::ranges::any_of(names, [name](std::string_view other) {
    return name.size() == other.size() && wire::equal_ignoring_case(name, other);
  });
}

bool begins_with(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() &&
         wire::equal_ignoring_case(name.substr(0, prefix.size()), prefix);
}

bool is_internal(std::string_view name) {
  return std::ranges::any_of(kInternalPrefixes,
                             [name](std::string_view prefix) { return begins_with(name, prefix); });
}

bool is_stripped(std::string_view name, std::span<const std::string> stripped) {
  return std::ranges::any_of(stripped, [name](std::string_view other) {
    if (other.ends_with('*')) return begins_with(name, other.substr(0, other.size() - 1));
    return wire::equal_ignoring_case(name, other);
  });
}

// Role. The fields of a head that belong to its connection: the standard ones, and those that its
//   Connection field names.
// Lifetime. The head must outlive it.
// Invariants. Sorted: a head may name thousands of fields, and have as many.
class OfConnection {
 public:
  explicit OfConnection(const wire::Headers& headers) : named_(headers.tokens("connection")) {
    std::ranges::sort(named_, wire::less_ignoring_case);
  }
  bool contains(std::string_view name) const {
    return is_one_of(name, kHopByHop) ||
           std::ranges::binary_search(named_, name, wire::less_ignoring_case);
  }

 private:
  std::vector<std::string_view> named_;
};

}  // namespace

wire::Headers headers_for_worker(const wire::Headers& client, ForwardAuthorization authorization,
                                 std::span<const std::string> stripped) {
  wire::Headers headers;
  headers.reserve(client.size(), client.bytes());
  const OfConnection of_connection(client);
  for (std::size_t i = 0; i < client.size(); ++i) {
    const auto [name, value] = client[i];
    if (of_connection.contains(name) || is_one_of(name, kNotForWorkers) || is_internal(name) ||
        is_stripped(name, stripped))
      continue;
    const bool secret = wire::equal_ignoring_case(name, "authorization");
    if (secret && authorization == ForwardAuthorization::No) continue;
    headers.add(name, value);
  }
  return headers;
}

wire::Headers headers_for_client(const wire::Headers& worker) {
  wire::Headers headers;
  headers.reserve(worker.size() + kOwnHeaders, worker.bytes() + kOwnHeaderBytes);
  const OfConnection of_connection(worker);
  for (std::size_t i = 0; i < worker.size(); ++i) {
    const auto [name, value] = worker[i];
    if (of_connection.contains(name) || is_one_of(name, kNotForClients)) continue;
    headers.add(name, value);
  }
  return headers;
}

}  // namespace baton::pipeline
