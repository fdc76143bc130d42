// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/fetch.h"

#include "http_client/request_head.h"
#include "net/deadlines.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace baton::http_client {
namespace {

// An answer is parsed, and its contents are kept beside it.
constexpr std::size_t kFetchedMemory = 4;

}  // namespace

awaitable<Result<Answer>> fetch(UpstreamPool& pool, Target target, Question question,
                                ExchangeTimeouts timeouts, Cancellation* cancellation) {
  if (cancellation && cancellation->requested()) co_return fail(cancellation->reason());
  Exchange exchange(pool, target, timeouts);
  bool too_late = false;
  net::Deadline deadline(pool.deadlines(), [&exchange, &too_late] {
    too_late = true;
    exchange.drop();
  });
  std::optional<Cancellation::Listener> listener;
  if (cancellation) listener.emplace(*cancellation, [&exchange] { exchange.drop(); });
  const auto failed = [&](Error error) {
    if (cancellation && cancellation->requested()) return fail(cancellation->reason());
    // The exchange's own patience may be over a moment before.
    if (!too_late && error.code() != Errc::EngineTimeout) return fail(std::move(error));
    return fail(Errc::EngineTimeout,
                fmt::format("worker {} took too long to answer {} {}", target.endpoint.to_string(),
                            question.method, question.path));
  };

  const std::string head = request_head(question.method, question.path, target.endpoint.to_string(),
                                        {}, question.body.size(), question.own_headers);
  std::vector<std::string_view> body;
  if (!question.body.empty()) body.push_back(question.body);
  deadline.arm(timeouts.first_byte);
  if (auto sent = co_await exchange.send(head, body); !sent)
    co_return failed(std::move(sent.error()));

  Answer answer;
  answer.memory = MemoryShare(pool.memory());
  answer.status = exchange.head().status;
  if (const auto value = exchange.head().headers.find("retry-after")) answer.retry_after = *value;
  deadline.arm(timeouts.idle);
  exchange.progress();
  while (true) {
    const auto piece = co_await exchange.read();
    if (!piece) co_return failed(piece.error());
    if (piece->empty()) co_return answer;
    if (answer.body.size() + piece->size() > question.largest_answer) {
      co_return fail(Errc::EngineProtocol,
                     fmt::format("the answer of worker {} to {} {} has more than {} bytes",
                                 target.endpoint.to_string(), question.method, question.path,
                                 question.largest_answer));
    }
    if (!answer.memory.cover_work(answer.body.size() + piece->size(), kFetchedMemory))
      co_return fail(no_memory_for("a worker's answer"));
    answer.body += *piece;
  }
}

}  // namespace baton::http_client
