// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "etcd/entry.h"
#include "etcd/failure.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::etcd {

// The JSON of etcd's gateway: 64-bit numbers are strings, keys and values base64, and members with
// their default value are omitted. No I/O here.

// ---- requests ----

// A half-open range of keys.
struct KeyRange {
  std::string begin;
  std::string end;
};
// All keys that begin with `prefix`.
KeyRange prefix_range(std::string_view prefix);
// The first key there can be behind `key`.
std::string key_after(std::string_view key);

struct RangeRequest {
  KeyRange keys;
  std::int64_t limit = 0;
  std::int64_t revision = 0;  // 0: the newest
  bool keys_only = false;
};
std::string encode(const RangeRequest& request);
std::string encode_put(std::string_view key, std::string_view value, std::int64_t lease);
std::string encode_erase(std::string_view key);
std::string encode_grant(std::chrono::seconds ttl);
// For all requests that name a lease and nothing else.
std::string encode_lease(std::int64_t lease);
std::string encode_authenticate(std::string_view user, std::string_view password);
std::string encode_watch(const KeyRange& keys, std::int64_t from);

// ---- answers ----

// The decoded value, or a description of the fault.
template <class T>
using Decoded = std::expected<T, std::string>;

struct Page {
  std::int64_t revision = 0;
  std::vector<KeyValue> entries;
  bool more = false;
};
struct Nothing {};

Decoded<Page> decode_range(std::string_view body);
Decoded<std::int64_t> decode_put(std::string_view body);
Decoded<Lease> decode_grant(std::string_view body);
Decoded<std::chrono::seconds> decode_keep_alive(std::string_view body);
Decoded<std::chrono::seconds> decode_time_to_live(std::string_view body);
Decoded<std::string> decode_token(std::string_view body);
// Answers that say no more than that it was done.
Decoded<Nothing> decode_done(std::string_view body);

struct WatchMessage {
  std::int64_t revision = 0;
  bool created = false;
  bool canceled = false;
  std::string cancel_reason;
  std::int64_t compact_revision = 0;
  std::vector<Event> events;
};
Decoded<WatchMessage> decode_watch(std::string_view line);

// ---- refusals ----

// etcd's own error.
struct Refusal {
  int code = 0;  // of gRPC
  std::string message;
};
// The refusal in an answer or a line of a stream; nullopt where it is none.
std::optional<Refusal> find_refusal(std::string_view body);
// Describes an unsuccessful answer whose body is no refusal: one of a proxy, or of etcd's front.
std::string foreign_answer(std::string_view path, int status, std::string_view body);
Reason reason_of(const Refusal& refusal);
// A new token would help.
bool asks_for_token(const Refusal& refusal);
// etcd has no users, so authentication is impossible.
bool knows_no_users(const Refusal& refusal);

}  // namespace baton::etcd
