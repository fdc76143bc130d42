// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/exchange.h"

#include "http_client/request_head.h"

#include <fmt/format.h>

#include <utility>

namespace baton::etcd {
namespace {

using http_client::Phase;

constexpr std::size_t kHeaderBytes = 64 * 1024;
// The deadline of an exchange ends it, earlier than any of these.
constexpr std::chrono::hours kLonger{1};
constexpr http_client::ExchangeTimeouts kTimeouts{.first_byte = kLonger, .idle = kLonger};

}  // namespace

std::string Server::url() const {
  return fmt::format("{}://{}", tls ? "https" : "http", endpoint.to_string());
}

http_client::PoolOptions pool_options() {
  return {.connect_timeout = kLonger,
          .idle_per_worker = 0,
          .header_bytes = kHeaderBytes,
          // A watch may be silent for long, and a probe over another connection does not show
          // that its own leads nowhere any more.
          .probe_silence = true};
}

Exchange::Exchange(http_client::UpstreamPool& pool, const Options& options, const Server& server,
                   Cancellation& scope)
    : pool_(pool),
      options_(options),
      server_(server),
      deadline_(pool.deadlines(),
                [this] {
                  give_up(failure(Reason::Unreachable,
                                  fmt::format("took longer than {} ms", time_.count())));
                }),
      listener_(scope,
                [this, &scope] { give_up(failure(Reason::Stopped, scope.reason().message())); }) {}

Failure Exchange::failure(Reason reason, std::string_view what) const {
  return {.reason = reason, .message = fmt::format("etcd {}: {}", server_.url(), what)};
}

void Exchange::set_deadline(std::chrono::milliseconds time) {
  time_ = time;
  deadline_.arm(time);
}

void Exchange::give_up(Failure why) {
  if (given_up_) return;
  given_up_ = std::move(why);
  if (exchange_) exchange_->drop();
}

Failure Exchange::explain(const Error& error) const {
  if (given_up_) return *given_up_;
  if (error.code() == Errc::EngineProtocol) return failure(Reason::Protocol, error.message());
  const auto& [phase, status, why] = exchange_->failure();
  const bool closed = status == net::IoStatus::Closed;
  switch (phase) {
    case Phase::Resolve:
      return failure(Reason::Unreachable, "its name cannot be resolved: " + why);
    case Phase::Connect:
      return failure(Reason::Unreachable, "cannot connect: " + why);
    case Phase::Tls:
      return failure(Reason::Unreachable, why);
    case Phase::Send:
      return failure(Reason::Unreachable, "cannot send: " + why);
    case Phase::Head:
      if (closed) return failure(Reason::Unreachable, "closed the connection before it answered");
      break;
    case Phase::Body:
      if (closed) return failure(Reason::Unreachable, "closed the connection inside its answer");
      break;
  }
  return failure(Reason::Unreachable, "the connection broke: " + why);
}

awaitable<Reply<void>> Exchange::send(std::string_view path, std::string_view body,
                                      std::string_view token) {
  if (given_up_) co_return fail(*given_up_);
  if (server_.tls) {
    auto made = http_client::make_tls_client(options_.tls);
    if (!made) co_return fail(failure(Reason::Refused, made.error().message()));
    tls_ = std::move(*made);
  }
  exchange_.emplace(pool_, http_client::Target{{}, server_.endpoint, tls_.get()}, kTimeouts);
  std::string headers = "Connection: close\r\n";
  if (!token.empty()) headers += fmt::format("Authorization: {}\r\n", token);
  const std::string head = http_client::request_head("POST", path, server_.endpoint.to_string(), {},
                                                     body.size(), headers);
  const auto sent = co_await exchange_->send(head, {body});
  if (!sent) co_return fail(explain(sent.error()));
  co_return Reply<void>();
}

awaitable<Reply<std::string_view>> Exchange::read() {
  // Checked also between two pieces that came together: after give_up() the caller wants no more.
  if (given_up_) co_return fail(*given_up_);
  exchange_->progress();
  const auto piece = co_await exchange_->read();
  if (!piece) co_return fail(explain(piece.error()));
  co_return *piece;
}

awaitable<Reply<std::string>> Exchange::read_all(std::size_t limit) {
  std::string whole;
  while (true) {
    const auto piece = co_await read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return whole;
    if (piece->size() > limit - whole.size()) {
      co_return fail(
          failure(Reason::Protocol, fmt::format("its answer is larger than {} bytes", limit)));
    }
    whole += *piece;
  }
}

}  // namespace baton::etcd
