// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::sim {

struct HttpRequest {
  std::string method;
  std::string path;                                          // without the query
  std::string query;                                         // behind the question mark
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool keep_alive = true;
  bool http_1_0 = false;

  // The value of a header by its lower-case name; empty when absent.
  std::string_view header(std::string_view name) const;
};

using Headers = std::vector<std::pair<std::string_view, std::string>>;

// Role. The server side of one HTTP/1.1 connection: requests in, whole or streamed answers out.
//   Requests are read with Beast and not with the router's own parser, so that the two cannot agree
//   on the same mistake.
// Confinement. One thread.
// Lifetime. Owned by the coroutine that serves it.
// Invariants. After `reset` or a failed write every later call fails.
class Connection {
 public:
  // `headers`: lines that every answer has, besides its date.
  explicit Connection(boost::asio::ip::tcp::socket socket, std::string headers = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // From the next answer on.
  void set_headers(std::string headers) { headers_ = std::move(headers); }

  // Nothing at the end of the connection and on bytes that are not HTTP.
  boost::asio::awaitable<std::optional<HttpRequest>> read_request();

  boost::asio::awaitable<bool> send(int status, std::string_view content_type,
                                    std::string_view body, Headers headers = {});
  boost::asio::awaitable<bool> send_json(int status, std::string_view body, Headers headers = {});
  // The HTTP server's own answer when the engine's code has failed: without the engine's headers.
  boost::asio::awaitable<bool> send_failure();
  // Half of an answer's body and then nothing, for the fault that cuts.
  boost::asio::awaitable<bool> send_half(std::string_view body);

  boost::asio::awaitable<bool> begin_stream();
  // Frames `data` as one chunk behind what is already in `out`.
  void append_chunk(std::string& out, std::string_view data) const;
  boost::asio::awaitable<bool> write(std::string_view bytes);
  boost::asio::awaitable<bool> end_stream();

  // Whether the next request begins to arrive, or the connection ends, within that time.
  boost::asio::awaitable<bool> heard_within(std::chrono::nanoseconds timeout);
  // Returns when the peer has gone; what it sends meanwhile is kept for the next request.
  boost::asio::awaitable<void> until_closed();

  // RST instead of FIN.
  void reset();
  bool keep_alive() const { return keep_alive_; }

 private:
  struct Reader;

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<Reader> reader_;
  std::string headers_;
  bool keep_alive_ = true;
  bool chunked_ = true;
};

}  // namespace baton::sim
