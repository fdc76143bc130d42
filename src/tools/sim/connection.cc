// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/connection.h"

#include "net/await.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::experimental::awaitable_operators::operator||;

constexpr std::uint64_t kBodyLimit = 256U << 20U;
constexpr std::uint32_t kHeaderLimit = 64U << 10U;
constexpr std::size_t kPipelineLimit = 64U << 10U;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

HttpRequest to_request(http::request<http::string_body>&& message) {
  HttpRequest request;
  request.method = view(message.method_string());
  const std::string_view target = view(message.target());
  const std::size_t question = std::min(target.find('?'), target.size());
  request.path = target.substr(0, question);
  request.query = target.substr(std::min(question + 1, target.size()));
  for (const auto& field : message) {
    request.headers.emplace_back(lower(view(field.name_string())), view(field.value()));
  }
  request.keep_alive = message.keep_alive();
  request.http_1_0 = message.version() < 11;
  request.body = std::move(message.body());
  return request;
}

// HTTP's date header, its name in lower case like these servers'.
std::string date_line() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), "date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
  return {text.data(), size};
}

}  // namespace

struct Connection::Reader {
  boost::beast::flat_buffer buffer;
};

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Connection::Connection(asio::ip::tcp::socket socket, std::string headers)
    : socket_(std::move(socket)),
      reader_(std::make_unique<Reader>()),
      headers_(std::move(headers)) {
  boost::system::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

Connection::~Connection() = default;

asio::awaitable<std::optional<HttpRequest>> Connection::read_request() {
  http::request_parser<http::string_body> parser;
  parser.body_limit(kBodyLimit);
  parser.header_limit(kHeaderLimit);
  auto [header_error, header_size] =
      co_await http::async_read_header(socket_, reader_->buffer, parser, net::kAwait);
  if (header_error) co_return std::nullopt;
  if (parser.get()[http::field::expect] == "100-continue") {
    if (!co_await write("HTTP/1.1 100 Continue\r\n\r\n")) co_return std::nullopt;
  }
  auto [error, size] = co_await http::async_read(socket_, reader_->buffer, parser, net::kAwait);
  if (error) co_return std::nullopt;
  HttpRequest request = to_request(parser.release());
  keep_alive_ = request.keep_alive;
  chunked_ = !request.http_1_0;
  co_return request;
}

asio::awaitable<bool> Connection::send(int status, std::string_view content_type,
                                       std::string_view body, Headers headers) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n{}{}", status,
                                view(http::obsolete_reason(static_cast<http::status>(status))),
                                date_line(), headers_);
  if (!content_type.empty())
    fmt::format_to(std::back_inserter(out), "content-type: {}\r\n", content_type);
  for (const auto& [name, value] : headers) {
    fmt::format_to(std::back_inserter(out), "{}: {}\r\n", name, value);
  }
  fmt::format_to(std::back_inserter(out), "content-length: {}\r\n{}\r\n", body.size(),
                 keep_alive_ ? "" : "connection: close\r\n");
  out += body;
  co_return co_await write(out);
}

asio::awaitable<bool> Connection::send_json(int status, std::string_view body, Headers headers) {
  return send(status, "application/json", body, std::move(headers));
}

asio::awaitable<bool> Connection::send_failure() {
  headers_ = "server: uvicorn\r\n";
  return send(500, "text/plain; charset=utf-8", "Internal Server Error");
}

asio::awaitable<bool> Connection::send_half(std::string_view body) {
  std::string out =
      fmt::format("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                  body.size());
  out += body.substr(0, body.size() / 2);
  co_return co_await write(out);
}

asio::awaitable<bool> Connection::begin_stream() {
  if (!chunked_) keep_alive_ = false;
  const std::string head = fmt::format(
      "HTTP/1.1 200 OK\r\n{}{}content-type: text/event-stream; charset=utf-8\r\n{}{}\r\n",
      date_line(), headers_, chunked_ ? "transfer-encoding: chunked\r\n" : "",
      keep_alive_ ? "" : "connection: close\r\n");
  co_return co_await write(head);
}

void Connection::append_chunk(std::string& out, std::string_view data) const {
  if (!chunked_) {
    out += data;
    return;
  }
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", data.size());
  out += data;
  out += "\r\n";
}

asio::awaitable<bool> Connection::write(std::string_view bytes) {
  auto [error, written] =
      co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()), net::kAwait);
  co_return !error;
}

asio::awaitable<bool> Connection::end_stream() {
  if (!chunked_) co_return true;
  co_return co_await write("0\r\n\r\n");
}

asio::awaitable<bool> Connection::heard_within(std::chrono::nanoseconds timeout) {
  if (reader_->buffer.size() > 0) co_return true;
  asio::steady_timer timer(socket_.get_executor(), timeout);
  const auto first = co_await (socket_.async_wait(asio::ip::tcp::socket::wait_read, net::kAwait) ||
                               timer.async_wait(net::kAwait));
  co_return first.index() == 0;
}

asio::awaitable<void> Connection::until_closed() {
  while (reader_->buffer.size() < kPipelineLimit) {
    auto [error, size] =
        co_await socket_.async_read_some(reader_->buffer.prepare(4096), net::kAwait);
    reader_->buffer.commit(size);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // The end is told once: who read on for the next request would wait for ever.
      keep_alive_ = false;
      co_return;
    }
  }
  // A peer that pipelines this much is not watched any longer.
  co_await socket_.async_wait(asio::ip::tcp::socket::wait_error, net::kAwait);
}

void Connection::reset() {
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

}  // namespace baton::sim
