// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "http_client/upstream_pool.h"
#include "net/peer_patience.h"
#include "wire/http_message.h"
#include "wire/json_object.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::http_client {

struct ExchangeTimeouts {
  std::chrono::milliseconds first_byte;  // from the request sent to the first progress
  std::chrono::milliseconds idle;        // from one progress to the next
};

// Role. One request to one worker and its answer.
// Confinement. One I/O thread.
// Lifetime. Ends before its pool does. Destroying an unfinished one closes its
//   connection, which is how engines are told to drop a request.
// Invariants. A kept-alive connection that proves dead before it answered a byte is replaced by a
//   fresh one, once. The connection goes back to the pool only after a complete answer.
//   Bytes alone earn a worker no time: all waiting for it together is bounded by first_byte, and by
//   idle from each progress() on. Time in which nothing is read does not count.
//   On a kept connection nothing is an answer that the worker sent before its machine had a byte of
//   the request: the pool looks for such bytes before the request is written, and those that were
//   under way by then show in that TCP has not acknowledged the request when they are read. An
//   answer acknowledges what it answers. The connection is then replaced like a dead one.
//   What cannot be told: bytes that a worker sends unasked after its machine has got the request.
//   They look in every respect like an answer to it.
class Exchange final : private UpstreamPool::Holder {
 public:
  Exchange(UpstreamPool& pool, Target target, ExchangeTimeouts timeouts);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // `then` runs once, when the request has been written; not where the worker took only some of it.
  void on_sent(std::function<void()> then) { on_sent_ = std::move(then); }
  // Sends the request and waits for the head of the answer. `head` is the request line and headers
  // with the closing blank line.
  awaitable<Result<void>> send(std::string_view head, const std::vector<std::string_view>& body);

  const wire::ResponseHead& head() const { return upstream_->parser.head(); }
  // The headers, which the exchange itself needs no longer.
  wire::Headers take_headers() { return std::move(upstream_->parser.head().headers); }
  // The next piece of the body, valid until the next call; empty at its end.
  awaitable<Result<std::string_view>> read();
  // The same in two steps, for where each coroutine counts: the next piece, the end or an error, as
  // far as known; nullopt: receive() must bring more, and calls `then` when it did. receive() itself
  // allocates nothing: it runs where no exception is caught. Requires: next() has just returned
  // nullopt; the exchange outlives the call of `then`.
  std::optional<Result<std::string_view>> next();
  template <class Then>
  void receive(Then then) {
    auto received = [this, since = pool_.deadlines().lived(),
                     then = std::move(then)](net::IoResult result) mutable {
      take_received(result, since);
      std::move(then)();
    };
    upstream_->connection.start_read(buffer_, patience_.left(), std::move(received));
  }
  // The worker has sent requested data: timeouts.idle begins anew.
  void progress() { patience_ = net::PeerPatience(timeouts_.idle); }
  // The whole body: timeouts.first_byte for its beginning, then timeouts.idle and a second more for
  // each PeerPatience::kSlowestRate bytes.
  // The exchange has the memory for it, and for what is made of it, until it ends.
  awaitable<Result<std::string>> read_all(std::size_t limit);
  // For a caller that keeps the answer longer.
  MemoryShare take_memory() { return std::move(memory_); }
  // The request went to a kept connection first, which proved unusable: the worker may have begun
  // there.
  bool replayed() const { return replayed_after_.has_value(); }
  // Time until it proved unusable.
  std::chrono::steady_clock::duration replayed_after() const {
    return replayed_after_.value_or(std::chrono::steady_clock::duration(0));
  }
  // The worker has got the whole request.
  bool sent_whole() const { return sent_whole_; }
  bool dropped() const { return dropped_; }
  // How send() or read() failed. Requires: it did, with another error than EngineProtocol.
  const ExchangeFailure& failure() const { return failure_; }
  // The answer is complete: the next read() returns empty without waiting.
  bool done() const { return done_; }
  // Reads on to the end of an answer whose content is complete, for a short while.
  awaitable<void> await_end(std::chrono::milliseconds patience);
  // Closes the connection; a pending wait ends with an error.
  void drop() override;

 private:
  enum class Origin { Fresh, Kept };
  awaitable<Result<void>> try_send(const std::vector<std::string_view>& pieces, Origin origin,
                                   bool& answered);
  // Makes buffer_ the space for the next bytes. Requires: all bytes read before were consumed.
  void make_room();
  net::IoResult take_received(net::IoResult result, std::chrono::steady_clock::time_point since);
  Error given_up(std::string_view when) const;
  Error explain(net::IoResult result, Phase phase);
  void finish();

  UpstreamPool& pool_;
  Target target_;
  ExchangeTimeouts timeouts_;
  net::PeerPatience patience_;          // with the answer, for as long as it is waited for
  Cancellation* connecting_ = nullptr;  // while a connection is being made
  std::unique_ptr<Upstream> upstream_;
  ExchangeFailure failure_;
  MemoryShare memory_;  // of a whole answer
  std::string buffer_;
  std::size_t begin_ = 0;  // unread bytes of buffer_
  std::size_t end_ = 0;
  bool body_begun_ = false;
  std::optional<std::chrono::steady_clock::duration> replayed_after_;
  std::function<void()> on_sent_;
  bool sent_whole_ = false;  // the worker has taken all of the request
  bool done_ = false;
  bool reusable_ = false;
  bool dropped_ = false;
};

}  // namespace baton::http_client
