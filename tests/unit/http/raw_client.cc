// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/http/raw_client.h"

#include <boost/asio/write.hpp>

#include <array>
#include <utility>

namespace baton::http {

namespace asio = boost::asio;
using asio::ip::tcp;

RawClient::RawClient(tcp::socket socket) : socket_(std::move(socket)) {
  socket_.non_blocking(true);
}

RawClient RawClient::connect(asio::io_context& io, std::uint16_t port) {
  tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), port});
  return RawClient(std::move(socket));
}

void RawClient::send(std::string_view bytes) {
  boost::system::error_code ignored;  // a test may go on sending to somebody who has closed
  asio::write(socket_, asio::buffer(bytes), ignored);
}

void RawClient::drain() {
  std::array<char, 64 * 1024> buffer;
  while (socket_.is_open() && !ended_) {
    boost::system::error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(buffer), error);
    received_.append(buffer.data(), size);
    if (error == asio::error::would_block) return;
    if (error) ended_ = true;
  }
}

const std::string& RawClient::received() {
  drain();
  return received_;
}

bool RawClient::ended() {
  drain();
  return ended_;
}

}  // namespace baton::http
