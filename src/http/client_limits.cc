// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/client_limits.h"

#include "libs/locks/mutex.h"

#include <boost/intrusive/list.hpp>
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace baton::http {
namespace {

// No peer's address has this first half: such addresses are for multicast groups.
constexpr std::uint64_t kKeyMark = std::numeric_limits<std::uint64_t>::max();

// Number of clients with a restored rate that are forgotten for each new one.
constexpr int kForgottenAtOnce = 2;

constexpr std::chrono::seconds kTryAgain{1};

// splitmix64's last step: each bit of the result depends on all of `x`.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

std::uint64_t hashed(ClientId id, std::uint64_t seed) {
  return mixed(mixed(id.high ^ seed) + id.low);
}

struct SeededHash {
  std::uint64_t seed = 0;
  std::size_t operator()(ClientId id) const { return hashed(id, seed); }
};

std::string_view name_of(ClientId id) { return id.is_key() ? "this API key" : "this address"; }

Error too_many(ClientId id, Limit limit, std::size_t most, std::string_view what) {
  return Error(Errc::RateLimited, fmt::format("{} has already {} {} (limits.{}); try again when "
                                              "one of them has ended",
                                              name_of(id), most, what, to_string(limit)))
      .with_retry_after(kTryAgain)
      .with_figures(fmt::format(R"({{"limit_kind":"{}","current":{},"limit":{}}})",
                                to_string(limit), most, most))
      .with_limit(limit);
}

Error too_fast(ClientId id, double rate, Rate::Duration wait) {
  using std::chrono::ceil;
  const auto milliseconds = ceil<std::chrono::milliseconds>(wait);
  return Error(Errc::RateLimited,
               fmt::format("{} sends more than {} requests a second (limits.client_rate); try "
                           "again later",
                           name_of(id), rate))
      .with_retry_after(ceil<std::chrono::seconds>(wait))
      .with_figures(fmt::format(R"({{"limit_kind":"{}","wait_ms":{},"limit":{}}})",
                                to_string(Limit::ClientRate), milliseconds.count(), rate))
      .with_limit(Limit::ClientRate);
}

}  // namespace

ClientId ClientId::of_key(std::size_t key) { return {.high = kKeyMark, .low = key}; }

ClientId ClientId::of_address(const model::Address& address) {
  const auto half = [&address](std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = at; i < at + 8; ++i) value = value << 8U | address[i];
    return value;
  };
  const ClientId whole{.high = half(0), .low = half(8)};
  const bool ipv4 = whole.high == 0 && whole.low >> 32U == 0xffff;
  return ipv4 ? whole : ClientId{.high = whole.high, .low = 0};
}

bool ClientId::is_key() const { return high == kKeyMark; }

// A client in the list has nothing open and is remembered for its rate only.
struct ClientLimits::Client : boost::intrusive::list_base_hook<> {
  Shard* shard = nullptr;
  ClientId id;
  std::size_t connections = 0;
  std::size_t requests = 0;
  TokenBucket bucket;
};

struct alignas(64) ClientLimits::Shard {
  Client& find(ClientId id, Clock::time_point now) REQUIRES(mutex) {
    const auto [at, made] = clients.try_emplace(id);
    Client& client = at->second;
    if (!made) return client;
    client.shard = this;
    client.id = id;
    // A client with a restored rate equals a new one.
    for (int i = 0; i < kForgottenAtOnce && !resting.empty(); ++i) {
      if (!resting.front().bucket.full(now)) break;
      forget_first();
    }
    return client;
  }
  void wake(Client& client) REQUIRES(mutex) {
    if (client.is_linked()) resting.erase(resting.iterator_to(client));
  }
  // The client may have nothing open any more.
  void settle(Client& client) REQUIRES(mutex) {
    if (client.connections > 0 || client.requests > 0) return;
    wake(client);
    resting.push_back(client);
    if (resting.size() > most_resting) forget_first();
  }
  void forget_first() REQUIRES(mutex) {
    const ClientId id = resting.front().id;
    resting.pop_front();
    clients.erase(id);
  }

  locks::Mutex mutex;
  std::size_t most_resting = 0;
  std::unordered_map<ClientId, Client, SeededHash> clients GUARDED_BY(mutex);
  boost::intrusive::list<Client> resting GUARDED_BY(mutex);  // the one silent longest comes first
};

ClientLimits::ClientLimits(const config::ClientLimits& limits, std::uint64_t seed,
                           std::size_t remembered)
    : limits_(limits),
      rate_(Rate::of(limits.rate, limits.burst)),
      seed_(seed),
      shards_(std::make_unique<std::array<Shard, kShards>>()) {
  for (Shard& shard : *shards_) {
    // Without a rate there is nothing to remember.
    shard.most_resting = rate_.limited() ? remembered / kShards : 0;
    shard.clients = decltype(shard.clients)(0, SeededHash{seed});
  }
}

ClientLimits::~ClientLimits() = default;

ClientLimits::Shard& ClientLimits::shard_of(ClientId id) const {
  static_assert(kShards == 64);
  return (*shards_)[hashed(id, seed_) >> 58U];
}

Result<ClientLimits::Connection> ClientLimits::connect(ClientId id, Clock::time_point now) {
  if (limits_.connections == 0) return nullptr;
  {
    Shard& shard = shard_of(id);
    const locks::Lock lock(shard.mutex);
    Client& client = shard.find(id, now);
    if (client.connections < limits_.connections) {
      ++client.connections;
      shard.wake(client);
      return Connection(&client);
    }
  }
  return fail(too_many(id, Limit::ClientConnections, limits_.connections, "connections"));
}

Result<ClientLimits::Request> ClientLimits::admit(ClientId id, Clock::time_point now) {
  const bool counted = limits_.requests > 0;
  if (!counted && !rate_.limited()) return nullptr;
  std::optional<Rate::Duration> wait;
  {
    Shard& shard = shard_of(id);
    const locks::Lock lock(shard.mutex);
    Client& client = shard.find(id, now);
    if (!counted || client.requests < limits_.requests) {
      wait = client.bucket.take(rate_, now);
      if (!wait && counted) {
        ++client.requests;
        shard.wake(client);
        return Request(&client);
      }
      shard.settle(client);
      if (!wait) return nullptr;
    }
  }
  if (wait) return fail(too_fast(id, limits_.rate, *wait));
  return fail(too_many(id, Limit::ClientRequests, limits_.requests, "requests running"));
}

void ClientLimits::ConnectionEnd::operator()(Client* client) const {
  Shard& shard = *client->shard;
  const locks::Lock lock(shard.mutex);
  --client->connections;
  shard.settle(*client);
}

void ClientLimits::RequestEnd::operator()(Client* client) const {
  Shard& shard = *client->shard;
  const locks::Lock lock(shard.mutex);
  --client->requests;
  shard.settle(*client);
}

std::size_t ClientLimits::size() const {
  std::size_t size = 0;
  for (Shard& shard : *shards_) {
    const locks::Lock lock(shard.mutex);
    size += shard.clients.size();
  }
  return size;
}

}  // namespace baton::http
