// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::etcd {

struct KeyValue {
  std::string key;
  std::string value;
  std::int64_t lease = 0;  // 0: none
  std::int64_t mod_revision = 0;
  std::int64_t create_revision = 0;
  bool operator==(const KeyValue&) const = default;
};

struct Listing {
  std::int64_t revision = 0;  // watch from the one after it
  std::vector<KeyValue> entries;
};

struct Event {
  enum class Kind { Put, Delete };
  Kind kind = Kind::Put;
  KeyValue entry;  // of a Delete only key and mod_revision
  bool operator==(const Event&) const = default;
};

struct Lease {
  std::int64_t id = 0;
  std::chrono::seconds ttl{0};  // what etcd chose; it may be longer than what was asked for
};

}  // namespace baton::etcd
