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

// Identity that a per-client limit applies to: one of the listener's keys, or an address.
struct ClientId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  static ClientId of_key(std::size_t key);  // by its place among the keys, from 1
  // IPv6 by the first 64 bits: a host has all the others to itself.
  static ClientId of_address(const model::Address& address);
  bool is_key() const;
  bool operator==(const ClientId&) const = default;
};

// Role. The process's limits per client: connections, concurrent requests, requests a second. One
//   table holds the current clients.
// Confinement. Any thread: the table has parts with a lock each, held for one look-up.
// Lifetime. Outlives the handles it has given out.
// Invariants. A client with a counted connection or request is always in the table, so it cannot
//   lose its count. Of the others the table keeps a bounded number and forgets the longest silent
//   one first. So other clients cannot lock a client out, and its exhausted rate is forgotten only
//   if it is silent while that many others come.
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
  // Handles that count until they are destroyed. Null if no limit is set.
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
