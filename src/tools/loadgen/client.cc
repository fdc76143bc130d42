// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/client.h"

#include "config/secret_file.h"
#include "config/values.h"
#include "net/await.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace baton::loadgen {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr std::size_t kHeaderBytes = 64 * 1024;
constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kMostIdle = 16'384;
constexpr milliseconds kConnectTimeout{10'000};
constexpr std::size_t kLargestAnswer = 64 * 1024 * 1024;

std::unexpected<Error> ended(Errc code, std::string kind) { return fail(code, std::move(kind)); }

Error explain(net::IoStatus status) {
  switch (status) {
    case net::IoStatus::Timeout:
      return {Errc::EngineTimeout, "timeout"};
    case net::IoStatus::Aborted:
      return {Errc::ClientGone, "cut"};
    case net::IoStatus::Ok:
    case net::IoStatus::Closed:
    case net::IoStatus::Failed:
      break;
  }
  return {Errc::StreamBroken, "broken"};
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

Result<std::shared_ptr<asio::ssl::context>> client_tls(const std::string& ca_file) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  if (ca_file.empty()) {
    context->set_default_verify_paths(error);
    return context;
  }
  context->load_verify_file(ca_file, error);
  if (error) {
    return fail(Errc::InvalidRequest,
                fmt::format("--ca-file: cannot use {}: {}", ca_file, error.message()));
  }
  return context;
}

}  // namespace

Result<Server> find_server(const std::string& url, const std::string& key_file,
                           const std::string& ca_file, const std::vector<std::string>& headers) {
  const auto parsed = config::parse_server_url(url);
  if (!parsed) return fail(Errc::InvalidRequest, parsed.error());
  Server server{.endpoint = parsed->endpoint,
                .addresses = {},
                .tls = nullptr,
                .headers = fmt::format("Host: {}\r\n", parsed->endpoint.to_string())};
  if (!key_file.empty()) {
    const auto key = read_key(key_file);
    if (!key) return fail(key.error());
    server.headers += fmt::format("Authorization: Bearer {}\r\n", *key);
  }
  for (const std::string& header : headers) server.headers += header + "\r\n";
  if (parsed->tls) {
    auto tls = client_tls(ca_file);
    if (!tls) return fail(tls.error());
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
  for (const auto& entry : found) server.addresses.push_back(entry.endpoint());
  return server;
}

Client::Channel::Channel(tcp::socket socket, net::Deadlines& deadlines, asio::ssl::context* tls)
    : connection(std::move(socket), deadlines, tls), parser(kHeaderBytes) {}

// One request and its answer on one connection.
struct Client::Exchange {
  std::unique_ptr<Channel> channel;
  std::array<std::string_view, 2> pieces;
  Clock::time_point until;
  const Listener& listener;
  bool answered = false;  // a byte has come
};

Client::Client(asio::io_context& io, net::Deadlines& deadlines, const Server& server,
               Cancellation& stop)
    : io_(io), deadlines_(deadlines), server_(server), stop_(stop) {}

std::unique_ptr<Client::Channel> Client::take_idle() {
  while (!idle_.empty()) {
    std::unique_ptr<Channel> channel = std::move(idle_.back());
    idle_.pop_back();
    if (!channel->connection.stale()) return channel;
  }
  return nullptr;
}

awaitable<Result<std::unique_ptr<Client::Channel>>> Client::connect(Clock::time_point until) {
  if (stop_.requested()) co_return ended(Errc::ClientGone, "cut");
  tcp::socket socket(io_);
  bool late = false;
  const auto close = [&socket] {
    boost::system::error_code ignored;
    socket.close(ignored);
  };
  net::Deadline deadline(deadlines_, [&late, &close] {
    late = true;
    close();
  });
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  deadline.arm(std::min(left, kConnectTimeout));
  const Cancellation::Listener listener(stop_, close);
  // An address that fails is not tried again soon: the next call begins with the following one.
  const auto& address = server_.addresses[next_address_ % server_.addresses.size()];
  const auto [error] = co_await socket.async_connect(address, net::kAwait);
  if (stop_.requested()) co_return ended(Errc::ClientGone, "cut");
  if (error || late) {
    ++next_address_;
    co_return ended(Errc::EngineUnreachable, late ? "connect_timeout" : "connect");
  }
  deadline.disarm();
  auto channel = std::make_unique<Channel>(std::move(socket), deadlines_, server_.tls.get());
  if (!server_.tls) co_return channel;
  const Cancellation::Listener aborts(stop_, [&channel] { channel->connection.abort(); });
  const auto shaken = co_await channel->connection.handshake_with(server_.endpoint.host,
                                                                  std::min(left, kConnectTimeout));
  if (shaken.status == net::IoStatus::Ok) co_return channel;
  co_return ended(Errc::EngineUnreachable, "tls");
}

awaitable<Result<void>> Client::exchange(Exchange& run) {
  net::Connection& connection = run.channel->connection;
  wire::ResponseParser& parser = run.channel->parser;
  const Cancellation::Listener aborts(stop_, [&connection] { connection.abort(); });
  const auto left = [&run] {
    return std::max(std::chrono::ceil<milliseconds>(run.until - Clock::now()), milliseconds(1));
  };
  const auto written = co_await connection.write(run.pieces, left());
  // After a failed write there may be an answer that says why.
  if (written.status != net::IoStatus::Ok && !connection.usable())
    co_return fail(explain(written.status));
  std::array<char, kReadBytes> buffer;
  while (true) {
    const auto received = co_await connection.read_some(buffer, left());
    std::span<char> bytes(buffer.data(), received.size);
    if (received.status == net::IoStatus::Closed) {
      if (run.answered && parser.finish() == wire::ParseStatus::Done) co_return Result<void>();
      co_return ended(Errc::StreamBroken, "broken");
    }
    if (received.status != net::IoStatus::Ok) co_return fail(explain(received.status));
    run.answered = true;
    while (true) {
      const auto progress = parser.feed(bytes);
      bytes = bytes.subspan(progress.consumed);
      if (!progress.body.empty()) run.listener.on_body(progress.body);
      if (progress.status == wire::ParseStatus::HeadDone) run.listener.on_head(parser.head());
      if (progress.status == wire::ParseStatus::Failed)
        co_return ended(Errc::EngineProtocol, "protocol");
      if (progress.status == wire::ParseStatus::Done) {
        if (bytes.empty() && parser.head().keep_alive && idle_.size() < kMostIdle) {
          parser.next();
          idle_.push_back(std::move(run.channel));
        }
        co_return Result<void>();
      }
      if (progress.status == wire::ParseStatus::NeedMore) break;
    }
  }
}

awaitable<Result<void>> Client::send(Call call, const Listener& listener) {
  if (stop_.requested()) co_return ended(Errc::ClientGone, "cut");
  std::string head =
      fmt::format("{} {} HTTP/1.1\r\n{}{}", call.method, call.path, server_.headers, call.headers);
  if (call.body.empty()) {
    head += "\r\n";
  } else {
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                        call.body.size());
  }
  Exchange run{.channel = take_idle(),
               .pieces = {head, call.body},
               .until = Clock::now() + call.timeout,
               .listener = listener};
  const bool kept = run.channel != nullptr;
  if (kept) {
    auto result = co_await exchange(run);
    if (result || run.answered || result.error().code() != Errc::StreamBroken) co_return result;
  }
  auto fresh = co_await connect(run.until);
  if (!fresh) co_return fail(fresh.error());
  run.channel = *std::move(fresh);
  co_return co_await exchange(run);
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
