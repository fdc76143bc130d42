// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/client.h"
#include "etcd/exchange.h"
#include "net/await.h"
#include "wire/http_status.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace baton::etcd {
namespace {

namespace asio = boost::asio;
using asio::experimental::awaitable_operators::operator&&;

// Number of successive unanswered probes after which a watched server counts as lost.
constexpr int kLostAfter = 2;
// etcd sends a sign of progress every ten minutes or so, by default. A watch without any is deaf,
// however well its server answers otherwise.
constexpr std::chrono::minutes kLongestSilence{30};
using wire::kOk;
// Capacity that a buffer keeps after a large message.
constexpr std::size_t kKeptLine = 64 * 1024;

}  // namespace

// State shared by the two halves of a watch: the reader and the prober.
struct Client::Watch {
  std::string prefix;
  std::int64_t from;
  std::int64_t told;  // everything up to this revision
  OnEvents on_events;
  Server server;
  Cancellation over;            // ends both halves
  std::optional<Failure> lost;  // the probe's finding
};

awaitable<Failure> Client::watch(std::string prefix, std::int64_t from, OnEvents on_events) {
  Watch watch{.prefix = std::move(prefix),
              .from = from,
              .told = from - 1,
              .on_events = std::move(on_events),
              .server = options_.endpoints[preferred_],
              .over = {},
              .lost = {}};
  const Cancellation::Listener stop(stopped_,
                                    [this, &watch] { watch.over.request(stopped_.reason()); });
  const std::size_t index = preferred_;
  Failure end{};
  {
    Exchange stream(pool_, options_, watch.server, watch.over);
    auto opened = co_await open_watch(watch, stream);
    if (!opened) {
      end = std::move(opened.error());
    } else {
      end = co_await (follow(watch, stream) && probe(watch));
    }
  }
  if (end.reason == Reason::Unreachable || end.reason == Reason::Protocol) {
    if (preferred_ == index) preferred_ = (index + 1) % options_.endpoints.size();
  }
  co_return end;
}

awaitable<Reply<void>> Client::open_watch(Watch& watch, Exchange& stream) {
  const auto until = Clock::now() + options_.timeout;
  // A watch with an old token is refused like one without rights, so it gets a new one.
  if (!options_.user.empty()) {
    if (auto done = co_await authenticate({watch.server, until, watch.over}, token_); !done)
      co_return done;
  }
  stream.set_deadline(Try{watch.server, until, watch.over}.left());
  const std::string body = encode_watch(prefix_range(watch.prefix), watch.from);
  auto sent = co_await stream.send("/v3/watch", body, token_);
  if (!sent) co_return sent;
  if (stream.status() == kOk) co_return Reply<void>();
  const auto answer = co_await stream.read_all(options_.message_bytes);
  if (!answer) co_return fail(answer.error());
  if (const auto refusal = find_refusal(*answer))
    co_return fail(stream.failure(reason_of(*refusal), "/v3/watch: " + refusal->message));
  co_return fail(
      stream.failure(Reason::Protocol, foreign_answer("/v3/watch", stream.status(), *answer)));
}

// Reads until the end, and takes the probe along.
awaitable<Failure> Client::follow(Watch& watch, Exchange& stream) {
  Failure end = co_await read_events(watch, stream);
  if (watch.lost) end = std::move(*watch.lost);
  watch.over.request(Error(Errc::StreamBroken, "the watch is over"));
  co_return end;
}

awaitable<Failure> Client::read_events(Watch& watch, Exchange& stream) {
  std::string line;
  while (true) {
    const auto piece = co_await stream.read();
    if (!piece) co_return piece.error();
    if (piece->empty()) co_return stream.failure(Reason::Unreachable, "ended the watch");
    std::string_view rest = *piece;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      if (std::min(end, rest.size()) > options_.message_bytes - line.size()) {
        co_return stream.failure(
            Reason::Protocol,
            fmt::format("a message of the watch is larger than {} bytes", options_.message_bytes));
      }
      line += rest.substr(0, end);
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
      if (auto over = take_message(watch, stream, line)) co_return std::move(*over);
      // A listener that stopped us wants to hear no more; the next read says why.
      if (watch.over.requested()) break;
      line.clear();
      if (line.capacity() > kKeptLine) std::string().swap(line);
    }
  }
}

std::optional<Failure> Client::take_message(Watch& watch, Exchange& stream, std::string_view line) {
  if (line.empty()) return std::nullopt;
  auto message = decode_watch(line);
  if (!message) {
    if (const auto refusal = find_refusal(line))
      return stream.failure(reason_of(*refusal), "/v3/watch: " + refusal->message);
    return stream.failure(Reason::Protocol, "/v3/watch: " + message.error());
  }
  if (message->compact_revision > 0) {
    Failure failure =
        stream.failure(Reason::Compacted, fmt::format("revision {} is gone, the oldest is {}",
                                                      watch.from, message->compact_revision));
    failure.compact_revision = message->compact_revision;
    return failure;
  }
  if (message->canceled) {
    // A watch that is refused has no code, only words.
    const Refusal refusal{.code = 0, .message = message->cancel_reason};
    return stream.failure(reason_of(refusal), "the watch was refused: " + refusal.message);
  }
  stream.set_deadline(kLongestSilence);
  if (message->created) {
    watch.on_events({}, watch.told);
    if (message->events.empty()) return std::nullopt;
  }
  // A message may hold only some of the events up to its header's revision.
  const std::int64_t revision =
      message->events.empty() ? message->revision : message->events.back().entry.mod_revision;
  watch.told = std::max(watch.told, revision);
  watch.on_events(std::move(message->events), watch.told);
  return std::nullopt;
}

// The revision the watched server is at.
awaitable<Reply<std::int64_t>> Client::look(Watch& watch, std::string_view question) {
  const Try attempt{watch.server, Clock::now() + options_.timeout, watch.over};
  const auto answer = co_await ask(attempt, "/v3/kv/range", question);
  if (!answer) co_return fail(answer.error());
  const auto page = decode_range(*answer);
  if (page) co_return page->revision;
  co_return fail(Reason::Protocol,
                 fmt::format("etcd {}: /v3/kv/range: {}", watch.server.url(), page.error()));
}

// A server that was paused, or cut off from its cluster, keeps its connections and says nothing.
awaitable<void> Client::probe(Watch& watch) {
  const std::string question =
      encode({.keys = prefix_range(watch.prefix), .limit = 1, .revision = 0, .keys_only = true});
  int unanswered = 0;
  while (!watch.over.requested()) {
    asio::steady_timer pause(io_, options_.probe_every);
    const Cancellation::Listener wake(watch.over, [&pause] { pause.cancel(); });
    co_await pause.async_wait(net::kAwait);
    if (watch.over.requested()) break;
    auto found = co_await look(watch, question);
    if (watch.over.requested()) break;
    unanswered = found ? 0 : unanswered + 1;
    if (found && *found < watch.told) {
      found = fail(Reason::Compacted,
                   fmt::format("etcd {} is at revision {}, but was at {}: its data was replaced",
                               watch.server.url(), *found, watch.told));
      unanswered = kLostAfter;
    }
    if (unanswered < kLostAfter) continue;
    watch.lost = std::move(found.error());
    watch.over.request(Error(Errc::StreamBroken, "the watched server is lost"));
  }
}

}  // namespace baton::etcd
