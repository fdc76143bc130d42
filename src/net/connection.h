// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "net/deadlines.h"
#include "net/descriptor_budget.h"
#include "net/peer_patience.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace baton::net {

using boost::asio::awaitable;
using boost::asio::ip::tcp;

enum class IoStatus {
  Ok,
  Closed,   // the peer ended the stream in good order
  Timeout,  // our deadline passed
  Aborted,  // abort() was called
  Failed,   // reset, TLS error …: error() says which
};

struct IoResult {
  IoStatus status;
  std::size_t size;
};

// Role. A byte stream to a peer, plain or TLS. Waits end by data, by their timeout or by abort();
//   no wait is unbounded.
// Confinement. The I/O thread of its Deadlines.
// Lifetime. Owned by a session or an upstream. Must not die while one of its coroutines is
//   suspended.
// Invariants. One read and one write at a time. After Timeout, Aborted or a failed read every
//   further operation fails the same way; after a failed write what the peer sent can be read.
class Connection {
 public:
  // `tls` null: plain.
  Connection(tcp::socket socket, Deadlines& deadlines, boost::asio::ssl::context* tls = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The server's half of the TLS handshake. Nothing to do on a plain connection.
  awaitable<IoResult> handshake(std::chrono::milliseconds timeout);
  // The client's half: the peer must show a certificate for `host` that the context trusts.
  awaitable<IoResult> handshake_with(const std::string& host, std::chrono::milliseconds timeout);
  awaitable<IoResult> read_some(std::span<char> into, std::chrono::milliseconds timeout);
  // The same in two steps, for where each nested coroutine counts: end_read(co_await
  // begin_read(…)). Requires: usable().
  using ReadEnd = std::tuple<boost::system::error_code, std::size_t>;
  awaitable<ReadEnd> begin_read(std::span<char> into, std::chrono::milliseconds timeout);
  IoResult end_read(ReadEnd end) { return settle(std::get<0>(end), std::get<1>(end)); }
  // Reads, and calls `then` with the IoResult: costs no coroutine. Requires: usable().
  template <class Then>
  void start_read(std::span<char> into, std::chrono::milliseconds timeout, Then then) {
    deadline_.arm(timeout);
    const auto buffer = boost::asio::buffer(into.data(), into.size());
    auto ended = [this, then = std::move(then)](boost::system::error_code error,
                                                std::size_t size) mutable {
      std::move(then)(settle(error, size));
    };
    if (tls_) return tls_->async_read_some(buffer, std::move(ended));
    socket_.async_read_some(buffer, std::move(ended));
  }
  // Reads without waiting; Ok and 0 if nothing is there, or if only waiting can tell.
  IoResult try_read(std::span<char> into);
  // Waits until there is something to read, so that an idle connection needs no buffer.
  awaitable<IoResult> wait_readable(std::chrono::milliseconds timeout);
  // Writes without waiting: everything (Ok), or a part (Ok, and a smaller size).
  IoResult try_write(std::span<const std::string_view> pieces);
  // Writes everything from byte `written` on. `timeout` begins again with each byte that the peer
  // takes; `patience`, where there is one, bounds all waiting together.
  awaitable<IoResult> write_rest(std::span<const std::string_view> pieces, std::size_t written,
                                 std::chrono::milliseconds timeout,
                                 PeerPatience* patience = nullptr);
  // Writes everything.
  awaitable<IoResult> write(std::span<const std::string_view> pieces,
                            std::chrono::milliseconds timeout, PeerPatience* patience = nullptr);

  // The wait under way, if there is one, ends by its timeout no later than that.
  void hasten(std::chrono::milliseconds timeout) { deadline_.hasten(timeout); }
  // Ends every wait, now and later. Safe at any time.
  void abort();
  // Runs `on_gone` once if the peer closes while no read is under way. The check starts after a
  // short delay: most answers are faster, and pay nothing for it.
  void watch_peer(std::function<void()> on_gone);
  void unwatch_peer();
  // After a Timeout: the connection is still whole, so an error can be written.
  void recover();
  // Tells the peer that no more will come; what it still sends can be read.
  void end_writing();
  // Orderly end.
  awaitable<void> close();

  bool usable() const { return state_ == IoStatus::Ok; }
  IoStatus status() const { return state_; }
  std::string error() const { return error_.message(); }
  // Why the peer's certificate was refused in the handshake; empty: it was not.
  std::string certificate_problem() const;
  // The last failure was this machine's, not the peer's.
  bool failed_locally() const { return is_local_fault(error_); }
  // True if the peer has closed or sent unrequested bytes: the connection cannot be reused.
  bool stale();
  // Number of bytes written that the peer's machine has not acknowledged yet.
  std::size_t unacknowledged();

 private:
  using TlsStream = boost::asio::ssl::stream<tcp::socket&>;

  void on_timeout();
  void look_at_peer();
  bool peer_hung_up();
  IoResult settle(boost::system::error_code error, std::size_t size);
  IoResult settle_write(boost::system::error_code error, std::size_t size);
  awaitable<IoResult> write_tls(std::span<const std::string_view> pieces, std::size_t written,
                                std::chrono::milliseconds timeout, PeerPatience* patience);

  tcp::socket socket_;
  std::unique_ptr<TlsStream> tls_;
  Deadlines& deadlines_;
  Deadline deadline_;
  std::unique_ptr<Deadline> watch_;  // made when first needed: most connections are to workers
  std::function<void()> on_gone_;
  // Points at us while an async_wait of the watcher is pending, so that it can be told we are gone.
  std::shared_ptr<Connection*> waiter_;
  IoStatus state_ = IoStatus::Ok;
  boost::system::error_code error_;
};

}  // namespace baton::net
