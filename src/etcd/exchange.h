// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "etcd/failure.h"
#include "etcd/options.h"
#include "http_client/resolver.h"
#include "net/deadlines.h"
#include "wire/http_parser.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::etcd {

using boost::asio::awaitable;

// Role. One POST to one etcd server, over a connection of its own, and the answer piece by piece.
//   A connection for each keeps a dead one from being used; calls are rare enough for that.
// Confinement. One I/O thread.
// Lifetime. Ends before its scope and options do. Must not die while a coroutine of it is suspended.
// Invariants. No wait outlasts the deadline or the scope. Every failure names the server.
class Exchange {
 public:
  Exchange(boost::asio::io_context& io, net::Deadlines& deadlines, const Options& options,
           const Server& server, Cancellation& scope);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Everything must end within `time` from now.
  void set_deadline(std::chrono::milliseconds time);

  // Resolves, connects, sends, and waits for the head of the answer. `token` empty: none.
  awaitable<Reply<void>> send(std::string_view path, std::string_view body, std::string_view token);
  int status() const { return status_; }
  // The next piece of the body, valid until the next call; empty at its end.
  awaitable<Reply<std::string_view>> read();
  // The whole body.
  awaitable<Reply<std::string>> read_all(std::size_t limit);

  // A failure that names the server.
  Failure failure(Reason reason, std::string_view what) const;

 private:
  using tcp = boost::asio::ip::tcp;
  using TlsStream = boost::asio::ssl::stream<tcp::socket&>;

  void give_up(Failure why);
  // The failure that ended the wait, if Baton ended it.
  std::optional<Failure> ended(const boost::system::error_code& error, std::string_view when) const;

  awaitable<Reply<void>> connect();
  awaitable<Reply<std::vector<tcp::endpoint>>> resolve();
  awaitable<Reply<void>> secure();
  Reply<void> load_certificates(boost::asio::ssl::context& context) const;
  awaitable<Reply<void>> write(std::string_view request);
  // More bytes from the server; an empty span where it has closed.
  awaitable<Reply<std::span<char>>> receive();
  Failure protocol_failure() const;

  const Options& options_;
  const Server& server_;
  tcp::socket socket_;
  std::unique_ptr<boost::asio::ssl::context> tls_context_;
  std::unique_ptr<TlsStream> tls_;
  http_client::Resolver resolver_;
  http_client::Resolver::Wait lookup_;
  wire::ResponseParser parser_;
  std::vector<char> buffer_;
  std::span<char> unread_;  // of buffer_
  int status_ = 0;
  bool done_ = false;
  std::optional<Failure> given_up_;
  std::chrono::milliseconds time_{0};
  net::Deadline deadline_;
  Cancellation::Listener listener_;  // last: it may speak at once
};

}  // namespace baton::etcd
