// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::http {

// Role. A client that sends the bytes it is told and keeps those that come. Never waits: what it
//   talks to runs on the same thread.
class RawClient {
 public:
  explicit RawClient(boost::asio::ip::tcp::socket socket);
  static RawClient connect(boost::asio::io_context& io, std::uint16_t port);

  void send(std::string_view bytes);
  void close() { socket_.close(); }
  // All that has come so far.
  const std::string& received();
  // The other side has closed, and everything it sent is in received().
  bool ended();

 private:
  void drain();

  boost::asio::ip::tcp::socket socket_;
  std::string received_;
  bool ended_ = false;
};

}  // namespace baton::http
