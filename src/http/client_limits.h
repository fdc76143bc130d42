// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/result.h"
#include "http/token_bucket.h"
#include "model/network.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace baton::http {

// What a limit per client counts for: one of the listener's keys, or an address.
struct ClientId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  static ClientId of_key(std::size_t key);  // by its place among the keys, from 1
  // IPv6 by the first 64 bits: a host has all the others to itself.
  static ClientId of_address(const model::Address& address);
  bool is_key() const;
  bool operator==(const ClientId&) const = default;
};

// Role. The limits per client of the whole process: connections, requests at a time, requests a
//   second. A table has the clients that there are.
// Confinement. Any thread: the table has parts with a lock each, held for one look-up.
// Lifetime. Outlives what it has given out.
// Invariants. A client with a connection or a request that counts is always in the table, so it
//   cannot lose its count; of the others, the table remembers no more than it is told to, and
//   forgets first the one that has been silent longest. So a client cannot be kept out by others,
//   and its exhausted rate is forgotten only if it is silent while so many others come.
class ClientLimits {
 public:
  using Clock = TokenBucket::Clock;

  // Clients without a connection or a request that counts.
  static constexpr std::size_t kRemembered = 65'536;

  // `seed` is not for clients to know: it says where in the table they are.
  ClientLimits(const config::ClientLimits& limits, std::uint64_t seed,
               std::size_t remembered = kRemembered);
  ~ClientLimits();

  struct Client;
  struct ConnectionEnd {
    void operator()(Client* client) const;
  };
  struct RequestEnd {
    void operator()(Client* client) const;
  };
  // What counts until it ends. Null where no limit is set for it.
  using Connection = std::unique_ptr<Client, ConnectionEnd>;
  using Request = std::unique_ptr<Client, RequestEnd>;

  // RateLimited where the client has as many as it may have.
  Result<Connection> connect(ClientId id, Clock::time_point now);
  Result<Request> admit(ClientId id, Clock::time_point now);

  // How many clients are in the table.
  std::size_t size() const;

 private:
  struct Shard;
  static constexpr std::size_t kShards = 64;

  Shard& shard_of(ClientId id) const;

  config::ClientLimits limits_;
  Rate rate_;
  std::uint64_t seed_;
  std::unique_ptr<std::array<Shard, kShards>> shards_;
};

}  // namespace baton::http
