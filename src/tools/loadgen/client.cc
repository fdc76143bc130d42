// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/client.h"

#include "config/secret_file.h"
#include "config/values.h"
#include "http_client/exchange.h"
#include "http_client/request_head.h"

#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::loadgen {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using http_client::Phase;
using std::chrono::milliseconds;

constexpr std::size_t kHeaderBytes = 64 * 1024;
constexpr std::size_t kMostIdle = 16'384;
constexpr milliseconds kConnectTimeout{10'000};
constexpr std::size_t kLargestAnswer = 64 * 1024 * 1024;

bool is_of_connecting(Phase phase) { return phase == Phase::Resolve || phase == Phase::Connect; }

// The kind of a failure. `late`: the call's own time was over.
std::string kind_of(const Error& error, const http_client::ExchangeFailure& failure, bool late) {
  if (error.code() == Errc::EngineProtocol) return "protocol";
  const bool timeout = late || failure.status == net::IoStatus::Timeout;
  if (is_of_connecting(failure.phase)) return timeout ? "connect_timeout" : "connect";
  if (failure.phase == Phase::Tls) return "tls";
  return timeout ? "timeout" : "broken";
}

Result<std::string> read_key(const std::string& path) {
  const auto text = config::read_secret_file(path);
  if (!text) return fail(Errc::InvalidRequest, fmt::format("--api-key-file: {}", text.error()));
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line.front() != '#') return std::string(line);
  }
  return fail(Errc::InvalidRequest, fmt::format("--api-key-file: there is no key in {}", path));
}

}  // namespace

Result<Server> find_server(const std::string& url, const std::string& key_file,
                           const std::string& ca_file, const std::vector<std::string>& headers) {
  const auto parsed = config::parse_server_url(url);
  if (!parsed) return fail(Errc::InvalidRequest, parsed.error());
  Server server{.endpoint = parsed->endpoint, .addresses = {}, .tls = nullptr, .headers = {}};
  if (!key_file.empty()) {
    const auto key = read_key(key_file);
    if (!key) return fail(key.error());
    server.headers += fmt::format("Authorization: Bearer {}\r\n", *key);
  }
  for (const std::string& header : headers) server.headers += header + "\r\n";
  if (parsed->tls) {
    auto tls = http_client::make_tls_client({.ca_file = ca_file});
    if (!tls) return fail(Errc::InvalidRequest, "--ca-file: " + tls.error().message());
    server.tls = *std::move(tls);
  }
  asio::io_context io(1);
  tcp::resolver resolver(io);
  boost::system::error_code error;
  const auto found =
      resolver.resolve(server.endpoint.host, std::to_string(server.endpoint.port), error);
  if (error) {
    return fail(Errc::EngineUnreachable,
                fmt::format("{} cannot be found: {}", server.endpoint.host, error.message()));
  }
  for (const auto& entry : found) server.addresses.push_back(entry.endpoint().address());
  return server;
}

Client::Client(asio::io_context& io, net::Deadlines& deadlines, const Server& server,
               Cancellation& stop)
    : server_(server),
      stop_(stop),
      pool_(io, deadlines,
            {.connect_timeout = kConnectTimeout,
             .idle_per_worker = kMostIdle,
             .header_bytes = kHeaderBytes,
             .lookup = [this](const std::string&, const http_client::Resolver::Done& done) {
               done({.error = {}, .addresses = addresses()});
             }}) {}

std::vector<asio::ip::address> Client::addresses() const {
  auto all = server_.addresses;
  std::ranges::rotate(all, all.begin() + static_cast<std::ptrdiff_t>(next_address_ % all.size()));
  return all;
}

awaitable<Result<void>> Client::send(Call call, const Listener& listener) {
  if (stop_.requested()) co_return fail(Errc::ClientGone, "cut");
  http_client::Exchange exchange(pool_, {{}, server_.endpoint, server_.tls.get()},
                                 {.first_byte = call.timeout, .idle = call.timeout});
  bool late = false;
  net::Deadline deadline(pool_.deadlines(), [&exchange, &late] {
    late = true;
    exchange.drop();
  });
  deadline.arm(call.timeout);
  const Cancellation::Listener stop(stop_, [&exchange] { exchange.drop(); });
  const auto failed = [&](const Error& error) {
    if (stop_.requested()) return fail(Errc::ClientGone, "cut");
    const http_client::ExchangeFailure& failure = exchange.failure();
    // An address that fails is not tried again soon: the next call begins with the following one.
    if (is_of_connecting(failure.phase)) ++next_address_;
    return fail(error.code(), kind_of(error, failure, late));
  };

  const std::string head =
      http_client::request_head(call.method, call.path, server_.endpoint.to_string(), {},
                                call.body.size(), server_.headers + std::string(call.headers));
  const auto sent = co_await exchange.send(head, {call.body});
  if (!sent) co_return failed(sent.error());
  listener.on_head(exchange.head());
  while (true) {
    const auto piece = co_await exchange.read();
    if (!piece) co_return failed(piece.error());
    if (piece->empty()) co_return Result<void>();
    listener.on_body(*piece);
    exchange.progress();
  }
}

awaitable<Result<std::string>> Client::get(std::string_view path, milliseconds timeout) {
  std::string body;
  int status = 0;
  const Listener listener{
      .on_head = [&status](const wire::ResponseHead& head) { status = head.status; },
      .on_body =
          [&body](std::string_view bytes) {
            body += bytes.substr(0, kLargestAnswer - body.size());
          }};
  const auto sent = co_await send(
      {.method = "GET", .path = path, .body = "", .headers = "", .timeout = timeout}, listener);
  if (!sent) co_return fail(sent.error());
  if (status != 200) co_return fail(Errc::EngineFailed, fmt::format("status {}", status));
  co_return body;
}

}  // namespace baton::loadgen
