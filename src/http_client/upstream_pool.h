// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "http_client/connector.h"
#include "model/worker.h"
#include "net/deadlines.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace baton::http_client {

// Role. Connections to workers, kept alive between requests.
// Confinement. One I/O thread.
// Invariants. At most idle_per_worker idle connections per worker; the one used last is used next,
//   so a quiet fleet keeps few. A connection on which bytes wait, or which its worker has closed, is
//   never given out, however short its rest was: such bytes would be taken for the next answer.
//   Looking costs one poll() (0.25 µs) for each request on a kept connection. A pending wait for
//   readability would cost none, but knows only what the loop has already been told of.
class UpstreamPool {
 public:
  UpstreamPool(boost::asio::io_context& io, net::Deadlines& deadlines, PoolOptions options);

  // A kept-alive connection that is alive and has nothing to say; null where there is none.
  std::unique_ptr<Upstream> take_idle(const Target& target);
  // A new connection, as Connector::connect makes it.
  awaitable<Result<std::unique_ptr<Upstream>>> connect(Target target, Cancellation* cancellation,
                                                       ExchangeFailure* failure = nullptr) {
    return connector_.connect(target, cancellation, failure);
  }
  void give_back(model::WorkerId worker, std::unique_ptr<Upstream> upstream);

  // The worker has gone, and its number is not used again.
  void forget(model::WorkerId worker) { idle_.erase(worker.value); }

  // The process ends: every exchange under way fails, and so does every later one.
  void shut_down();
  // A user of a connection that can be told to close it.
  class Holder : public boost::intrusive::list_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    virtual void drop() = 0;

   protected:
    ~Holder() = default;
  };
  void add_holder(Holder& holder) { holders_.push_back(holder); }

  net::Deadlines& deadlines() { return deadlines_; }
  MemoryBudget* memory() const { return options_.memory; }

  // Lets go of idle connections that their worker has closed. Done every few seconds.
  void sweep();
  std::size_t idle_count() const;

 private:
  bool drop_idle();

  net::Deadlines& deadlines_;
  net::Deadline sweep_;
  const PoolOptions options_;
  Connector connector_;
  bool shut_down_ = false;
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Upstream>>> idle_;
  boost::intrusive::list<Holder, boost::intrusive::constant_time_size<false>> holders_;
};

}  // namespace baton::http_client
