// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "etcd/entry.h"
#include "etcd/failure.h"
#include "etcd/messages.h"
#include "etcd/options.h"
#include "http_client/upstream_pool.h"
#include "net/deadlines.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::etcd {

using boost::asio::awaitable;

class Exchange;

// Role. A client of one etcd cluster's JSON gateway: HTTP/1.1, one connection per call. A call goes
//   to the endpoint that worked last, then to the others in turn.
// Confinement. One I/O thread.
// Lifetime. Outlives its calls: stop(), wait for them, destroy.
// Invariants. A call ends within Options::timeout (list: each of its pages). A watch whose server
//   no longer answers ends too. The password is in no message.
class Client {
 public:
  // Requires: at least one endpoint.
  Client(boost::asio::io_context& io, net::Deadlines& deadlines, Options options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // All keys that begin with `prefix`, as they were at one revision.
  awaitable<Reply<Listing>> list(std::string prefix);
  // The revision it made. `lease` 0: none. NotFound where the lease is gone.
  awaitable<Reply<std::int64_t>> put(std::string key, std::string value, std::int64_t lease);
  // No failure where there is no such key.
  awaitable<Reply<void>> erase(std::string key);

  awaitable<Reply<Lease>> grant(std::chrono::seconds ttl);
  // The lease's remaining time; 0: it is gone.
  awaitable<Reply<std::chrono::seconds>> keep_alive(std::int64_t lease);
  // 0 or less: it is gone.
  awaitable<Reply<std::chrono::seconds>> time_to_live(std::int64_t lease);
  // Its keys go with it. No failure where it is gone already.
  awaitable<Reply<void>> revoke(std::int64_t lease);

  // All events up to `revision` were reported: a next watch begins behind it.
  using OnEvents = std::function<void(std::vector<Event> events, std::int64_t revision)>;
  // Reports changes of keys that begin with `prefix`, from revision `from` on: once without events
  // as soon as the watch stands, then for each message of etcd, which may be a sign of progress
  // without events. Returns only when it is over, with the reason: Compacted (also where etcd's
  // data was replaced by older data), Stopped, or a connection or server that was lost. Requires:
  // from > 0.
  awaitable<Failure> watch(std::string prefix, std::int64_t from, OnEvents on_events);

  // Everything under way ends soon, and every later call at once.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  // One attempt: its server, its deadline, and the cancellation that ends it early.
  struct Try {
    const Server& server;
    Clock::time_point until;
    Cancellation& scope;
    std::chrono::milliseconds left() const;
  };
  struct Watch;

  // Asks one endpoint after the other until one gives an answer that `decode` understands.
  template <class T>
  awaitable<Reply<T>> call(std::string_view path, std::string body,
                           Decoded<T> (*decode)(std::string_view));
  // One request to one endpoint, with a new token where the old one is refused.
  awaitable<Reply<std::string>> ask(Try attempt, std::string_view path, std::string_view body);
  // The body of a good answer. Where etcd refused, `refusal` says how.
  awaitable<Reply<std::string>> post(Try attempt, std::string_view path, std::string_view body,
                                     std::string_view token, std::optional<Refusal>* refusal);
  // Sees to it that there is a token, and that it is not `refused`.
  awaitable<Reply<void>> authenticate(Try attempt, std::string refused);

  awaitable<Reply<void>> open_watch(Watch& watch, Exchange& stream);
  awaitable<Failure> follow(Watch& watch, Exchange& stream);
  awaitable<Failure> read_events(Watch& watch, Exchange& stream);
  // The end of the watch, where the message is one.
  std::optional<Failure> take_message(Watch& watch, Exchange& stream, std::string_view line);
  awaitable<void> probe(Watch& watch);
  awaitable<Reply<std::int64_t>> look(Watch& watch, std::string_view question);

  boost::asio::io_context& io_;
  http_client::UpstreamPool pool_;
  Options options_;
  Cancellation stopped_;
  std::size_t preferred_ = 0;  // the endpoint that worked last
  std::string token_;
};

}  // namespace baton::etcd
