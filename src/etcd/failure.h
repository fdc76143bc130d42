// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace baton::etcd {

// The caller's reaction depends on the reason; the words are for people.
enum class Reason {
  Unreachable,   // no connection, no answer in time, cut off, no leader: try again later
  Protocol,      // what came back is not etcd's JSON
  Refused,       // etcd understood and said no
  Unauthorized,  // user, password or rights
  NotFound,      // the lease is gone
  Compacted,     // the revision asked for is gone: list again
  Stopped,       // stop() was called
};

// Why a call or a watch ended. Not one of the program's errors: no request of a client fails by it.
struct Failure {
  Reason reason;
  std::string message;                // names the endpoint
  std::int64_t compact_revision = 0;  // with Compacted, where etcd told it: the oldest one there is
};

template <class T>
using Reply = std::expected<T, Failure>;

inline std::unexpected<Failure> fail(Reason reason, std::string message) {
  return std::unexpected(Failure{.reason = reason, .message = std::move(message)});
}
inline std::unexpected<Failure> fail(Failure failure) {
  return std::unexpected(std::move(failure));
}

}  // namespace baton::etcd
