// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "http_client/resolver.h"
#include "model/worker.h"
#include "net/connection.h"
#include "net/deadlines.h"
#include "net/descriptor_budget.h"
#include "wire/http_parser.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/intrusive/list.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

namespace baton::http_client {

using boost::asio::awaitable;

// A worker as seen by a connection.
struct Target {
  model::WorkerId id;
  const model::Endpoint& endpoint;
};

struct PoolOptions {
  std::chrono::milliseconds connect_timeout;
  std::size_t idle_per_worker;
  std::size_t header_bytes;
  net::DescriptorBudget* descriptors = nullptr;  // null: as many as there are
  net::DescriptorUse use = net::DescriptorUse::Control;
  MemoryBudget* memory = nullptr;  // of whole answers; null: they are not counted
  Resolver::Lookup lookup = {};    // of host names; empty: the system's
};

// One connection to a worker with its reading state. The buffer is there only while an answer is
// read.
struct Upstream {
  Upstream(net::tcp::socket socket, net::Deadlines& deadlines, const PoolOptions& options)
      : held(options.descriptors),
        connection(std::move(socket), deadlines),
        parser(options.header_bytes) {}
  net::DescriptorBudget::Held held;
  net::Connection connection;
  wire::ResponseParser parser;
};

// Role. Connections to workers, kept alive between requests.
// Confinement. One I/O thread.
// Invariants. No connection is kept on a descriptor that the pool's use may not have.
//   At most idle_per_worker idle connections per worker; the one used last is used next,
//   so a quiet fleet keeps few. A connection on which bytes wait, or which its worker has closed, is
//   never given out, however short its rest was: such bytes would be taken for the next answer.
//   Looking costs one poll() (0.25 µs) for each request on a kept connection. A pending wait for
//   readability would cost none, but knows only what the loop has already been told of.
class UpstreamPool {
 public:
  UpstreamPool(boost::asio::io_context& io, net::Deadlines& deadlines, PoolOptions options);

  // A kept-alive connection that is alive and has nothing to say; null where there is none.
  std::unique_ptr<Upstream> take_idle(const Target& target);
  // EngineUnreachable if it fails, with the cause connection_refused if nothing listens on the
  // port, or connection_reset if the listener is being closed; OutOfResources if this machine lacks
  // what a connection needs: the worker was not asked.
  awaitable<Result<std::unique_ptr<Upstream>>> connect(Target target, Cancellation* cancellation);
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
  // Opens a socket within the pool's descriptor bound. Idle connections make room for it.
  boost::system::error_code open(boost::asio::ip::tcp::socket& socket,
                                 const boost::asio::ip::tcp& protocol);
  awaitable<boost::system::error_code> connect_by_name(boost::asio::ip::tcp::socket& socket,
                                                       Resolver::Wait& lookup,
                                                       const model::Endpoint& endpoint,
                                                       const bool& stopped);
  Error out_of_resources(const model::Endpoint& endpoint, const boost::system::error_code& error);
  bool drop_idle();

  boost::asio::io_context& io_;
  net::Deadlines& deadlines_;
  net::Deadline sweep_;
  PoolOptions options_;
  Resolver resolver_;
  bool shut_down_ = false;
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Upstream>>> idle_;
  boost::intrusive::list<Holder, boost::intrusive::constant_time_size<false>> holders_;
};

}  // namespace baton::http_client
