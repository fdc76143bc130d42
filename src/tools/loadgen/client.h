// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "http_client/tls.h"
#include "http_client/upstream_pool.h"
#include "model/worker.h"
#include "net/deadlines.h"
#include "wire/http_message.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::loadgen {

using boost::asio::awaitable;

// The server under load; all threads share it.
struct Server {
  model::Endpoint endpoint;
  std::vector<boost::asio::ip::address> addresses;
  std::shared_ptr<http_client::TlsClient> tls;  // null: plain
  std::string headers;                          // lines that go with every request
};

// Looks the name up, reads the key and the certificates. Blocks.
Result<Server> find_server(const std::string& url, const std::string& key_file,
                           const std::string& ca_file, const std::vector<std::string>& headers);

// Callbacks for an answer as it arrives.
struct Listener {
  std::function<void(const wire::ResponseHead&)> on_head;
  std::function<void(std::string_view)> on_body;
};

struct Call {
  std::string_view method;
  std::string_view path;
  std::string_view body;
  std::string_view headers;  // further lines
  std::chrono::milliseconds timeout;
};

// Role. Sends requests to one server over kept-alive connections.
// Confinement. One I/O thread.
// Lifetime. Must not die while a call is under way.
// Invariants. Each call ends by its timeout, or when `stop` is requested. A kept connection that
//   proves dead before a byte came is replaced, once. No name is looked up: a lookup would count as
//   the server's time.
class Client {
 public:
  Client(boost::asio::io_context& io, net::Deadlines& deadlines, const Server& server,
         Cancellation& stop);

  // Fails with the kind of failure as message: connect, connect_timeout, tls, timeout, broken,
  // protocol or cut.
  awaitable<Result<void>> send(Call call, const Listener& listener);

  // The whole body, of status 200.
  awaitable<Result<std::string>> get(std::string_view path, std::chrono::milliseconds timeout);

 private:
  // The server's addresses, beginning with the next one.
  std::vector<boost::asio::ip::address> addresses() const;

  const Server& server_;
  Cancellation& stop_;
  std::size_t next_address_ = 0;
  http_client::UpstreamPool pool_;
};

}  // namespace baton::loadgen
