// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace baton::http_client {
namespace {

// The head of an answer and, where it is short, all of it come in one read. A stream of tokens
// needs little after that; one that fills its buffer gets a larger one until it calms down.
constexpr std::size_t kHeadBuffer = 2048;
constexpr std::size_t kSmallestBuffer = 512;
constexpr std::size_t kLargestBuffer = 32 * 1024;
constexpr std::size_t kBufferStep = 4;
// A whole answer is checked, and the prefill's data is put into a copy.
constexpr std::size_t kAnswerMemory = 4;

std::string_view when_in(Phase phase) {
  if (phase == Phase::Send) return "while it was sent the request";
  return phase == Phase::Head ? "before it answered" : "in the middle of its answer";
}

}  // namespace

Exchange::Exchange(UpstreamPool& pool, Target target, ExchangeTimeouts timeouts)
    : pool_(pool),
      target_(target),
      timeouts_(timeouts),
      patience_(timeouts.first_byte),
      memory_(pool.memory()) {
  pool_.add_holder(*this);
}

Exchange::~Exchange() {
  if (reusable_) pool_.give_back(target_.id, std::move(upstream_));
}

void Exchange::drop() {
  dropped_ = true;
  if (connecting_) connecting_->request(given_up("before it was connected"));
  if (!upstream_) return;
  upstream_->connection.abort();
  // Tells the worker at once, before the reading coroutine has noticed.
  upstream_->connection.end_writing();
}

awaitable<Result<void>> Exchange::send(std::string_view head,
                                       const std::vector<std::string_view>& body) {
  std::vector<std::string_view> pieces;
  pieces.reserve(body.size() + 1);
  pieces.push_back(head);
  pieces.insert(pieces.end(), body.begin(), body.end());

  upstream_ = pool_.take_idle(target_);
  Origin origin = upstream_ ? Origin::Kept : Origin::Fresh;
  while (true) {
    if (!upstream_) {
      Cancellation connecting;
      connecting_ = &connecting;
      auto connected = co_await pool_.connect(target_, &connecting, &failure_);
      connecting_ = nullptr;
      if (!connected) co_return fail(std::move(connected.error()));
      upstream_ = std::move(*connected);
    }
    if (dropped_) {
      failure_ = {.phase = Phase::Send, .status = net::IoStatus::Aborted, .why = {}};
      co_return fail(given_up("before it was sent the request"));
    }
    bool answered = false;
    const auto begun = std::chrono::steady_clock::now();
    auto sent = co_await try_send(pieces, origin, answered);
    if (sent || answered || origin == Origin::Fresh || dropped_ ||
        sent.error().code() == Errc::EngineTimeout) {
      co_return sent;
    }
    origin = Origin::Fresh;
    replayed_after_ = std::chrono::steady_clock::now() - begun;
    upstream_.reset();
  }
}

awaitable<Result<void>> Exchange::try_send(const std::vector<std::string_view>& pieces,
                                           Origin origin, bool& answered) {
  // A worker that refuses a request early may close before it took all of it; its answer is still
  // worth reading.
  net::PeerPatience sending(timeouts_.first_byte);
  const net::IoResult written =
      co_await upstream_->connection.write(pieces, timeouts_.first_byte, &sending);
  if (written.status == net::IoStatus::Timeout || written.status == net::IoStatus::Aborted) {
    co_return fail(explain(written, Phase::Send));
  }
  sent_whole_ = written.status == net::IoStatus::Ok;
  if (sent_whole_ && on_sent_) std::exchange(on_sent_, nullptr)();
  while (true) {
    // Interim heads and parts of a head do not end the wait.
    net::IoResult read{net::IoStatus::Timeout, 0};
    if (!patience_.over()) {
      make_room();
      const auto since = pool_.deadlines().lived();
      read =
          take_received(co_await upstream_->connection.read_some(buffer_, patience_.left()), since);
    }
    if (read.status != net::IoStatus::Ok) co_return fail(explain(read, Phase::Head));
    // A worker that has not received a byte of the request cannot answer it. A fresh connection may
    // be refused with an answer to no request, and carries no other request.
    if (!answered && origin == Origin::Kept &&
        upstream_->connection.unacknowledged() >= written.size) {
      co_return fail(Errc::EngineProtocol,
                     fmt::format("worker {} sent an answer before it had the request",
                                 target_.endpoint.to_string()));
    }
    answered = true;
    const auto progress = upstream_->parser.feed(std::span(buffer_.data() + begin_, end_ - begin_));
    begin_ += progress.consumed;
    if (progress.status == wire::ParseStatus::HeadDone) co_return Result<void>{};
    if (progress.status == wire::ParseStatus::Failed) co_return fail(upstream_->parser.error());
  }
}

awaitable<Result<std::string_view>> Exchange::read() {
  while (true) {
    if (auto piece = next()) co_return *std::move(piece);
    net::Connection& connection = upstream_->connection;
    const auto since = pool_.deadlines().lived();
    const auto end = co_await connection.begin_read(buffer_, patience_.left());
    take_received(connection.end_read(end), since);
  }
}

std::optional<Result<std::string_view>> Exchange::next() {
  if (done_) return std::string_view();
  const auto progress = upstream_->parser.feed(std::span(buffer_.data() + begin_, end_ - begin_));
  begin_ += progress.consumed;
  if (progress.status == wire::ParseStatus::Failed) return fail(upstream_->parser.error());
  if (progress.status == wire::ParseStatus::Done) finish();
  if (!progress.body.empty()) {
    body_begun_ = true;
    return progress.body;
  }
  if (done_) return std::string_view();
  // The status of the last read, too: after one that failed, the connection is unusable.
  net::IoResult read{upstream_->connection.status(), 0};
  if (read.status == net::IoStatus::Ok && !patience_.over()) {
    make_room();
    return std::nullopt;
  }
  if (read.status == net::IoStatus::Ok) read.status = net::IoStatus::Timeout;
  if (read.status == net::IoStatus::Closed &&
      upstream_->parser.finish() == wire::ParseStatus::Done) {
    done_ = true;
    return std::string_view();
  }
  return fail(explain(read, Phase::Body));
}

awaitable<void> Exchange::await_end(std::chrono::milliseconds patience) {
  patience_ = net::PeerPatience(patience);
  co_await read();
}

awaitable<Result<std::string>> Exchange::read_all(std::size_t limit) {
  std::string whole;
  while (true) {
    const auto piece = co_await read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return whole;
    if (whole.empty()) progress();
    patience_.spend(std::chrono::milliseconds(0), piece->size());
    if (whole.size() + piece->size() > limit) {
      co_return fail(Error(Errc::EngineProtocol,
                           fmt::format("the worker's answer is larger than limits.response_bytes "
                                       "({})",
                                       limit))
                         .with_limit(Limit::ResponseBytes));
    }
    if (!memory_.cover_work(whole.size() + piece->size(), kAnswerMemory))
      co_return fail(no_memory_for("the worker's answer"));
    whole += *piece;
  }
}

net::IoResult Exchange::take_received(net::IoResult result,
                                      std::chrono::steady_clock::time_point since) {
  end_ = result.status == net::IoStatus::Ok ? result.size : 0;
  const auto waited = pool_.deadlines().lived() - since;
  patience_.spend(std::chrono::duration_cast<std::chrono::milliseconds>(waited), 0);
  return result;
}

void Exchange::make_room() {
  std::size_t size = buffer_.empty() ? kHeadBuffer : buffer_.size();
  if (body_begun_ && end_ == size) size = std::min(size * kBufferStep, kLargestBuffer);
  if (body_begun_ && end_ < size / kBufferStep)
    size = std::max(size / kBufferStep, kSmallestBuffer);
  begin_ = end_ = 0;
  if (buffer_.size() != size) {
    // Anew, because a string that shrinks keeps its memory.
    buffer_ = std::string();
    buffer_.resize_and_overwrite(size, [](char*, std::size_t all) { return all; });
  }
}

Error Exchange::given_up(std::string_view when) const {
  return Error(
      body_begun_ ? Errc::StreamBroken : Errc::EngineFailed,
      fmt::format("the request to worker {} was given up {}", target_.endpoint.to_string(), when));
}

Error Exchange::explain(net::IoResult result, Phase phase) {
  const std::string_view when = when_in(phase);
  failure_ = {.phase = phase, .status = result.status, .why = upstream_->connection.error()};
  const std::string worker = target_.endpoint.to_string();
  const Errc code = body_begun_ ? Errc::StreamBroken : Errc::EngineFailed;
  switch (result.status) {
    case net::IoStatus::Timeout:
      return Error(Errc::EngineTimeout, fmt::format("worker {} took too long {}", worker, when));
    case net::IoStatus::Aborted:
      return given_up(when);
    case net::IoStatus::Closed:
      return Error(code, fmt::format("worker {} closed the connection {}", worker, when))
          .with_cause(std::errc::connection_reset);
    case net::IoStatus::Ok:
    case net::IoStatus::Failed:
      break;
  }
  if (upstream_->connection.failed_locally()) {
    return Error(Errc::OutOfResources,
                 fmt::format("the router's own machine failed the connection to worker {} {}: {}",
                             worker, when, upstream_->connection.error()))
        .with_retry_after(std::chrono::seconds(1));
  }
  return Error(code, fmt::format("the connection to worker {} broke {}: {}", worker, when,
                                 upstream_->connection.error()))
      .with_cause(std::errc::connection_reset);
}

void Exchange::finish() {
  done_ = true;
  // Bytes past the answer's end belong to nothing we asked for.
  reusable_ = begin_ == end_ && sent_whole_ && upstream_->parser.head().keep_alive &&
              upstream_->connection.usable();
}

}  // namespace baton::http_client
