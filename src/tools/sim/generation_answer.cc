// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How a generation request is answered, rightly or, under a fault, wrongly.
#include "net/await.h"
#include "tools/sim/dialect.h"
#include "tools/sim/generation.h"
#include "tools/sim/sglang_body.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using nlohmann::ordered_json;

constexpr int kFaultExitCode = 70;

asio::awaitable<void> sleep_ms(double ms) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(ms * 1000)));
  co_await timer.async_wait(net::kAwait);
}

Headers retry_hint(int status) {
  if (status == 429 || status == 503) return {{"retry-after", "1"}};
  return {};
}

}  // namespace

// Faults that strike before the engine sees the request. True when the request ends with it.
asio::awaitable<bool> Generation::strike_before_engine() {
  switch (fault_->kind) {
    case FaultKind::Reset:
      connection_.reset();
      break;
    case FaultKind::Status: {
      Error error(Errc::Internal, fmt::format("simulated fault: status {}", fault_->status));
      error.with_status(fault_->status);
      co_await fail_with(std::move(error));
      co_return true;
    }
    case FaultKind::Hang:
      co_await connection_.until_closed();
      break;
    default:
      co_return false;
  }
  ++services_.engine.counters().aborted;
  co_return true;
}

// Whether the fault lets `after_tokens` tokens pass and then breaks the answer.
bool Generation::breaks_after_tokens() const {
  if (!fault_) return false;
  switch (fault_->kind) {
    case FaultKind::HangStream:
    case FaultKind::ErrorEvent:
    case FaultKind::Die:
      return true;
    case FaultKind::Cut:
      return request_.stream;
    default:
      return false;
  }
}

void Generation::stream_token(Choice& choice, const TokenProduced& token,
                              AnswerCursor::Piece piece) {
  const AnswerPlan& plan = choice.cursor.plan();
  if (choice.held) {
    choice.held->append(std::move(piece));
    piece = *std::exchange(choice.held, {});
  }
  if (!token.first && !token.last && piece.earlier.size() + 1 < request_.stream_interval) {
    choice.held = std::move(piece);
    return;
  }
  if (token.first) {
    const Usage none = request_.continuous_usage ? prompt_usage() : Usage();
    shape_->open_choice(event_, choice.index, plan.hash, request_.prompts[choice.prompt],
                        request_.continuous_usage ? &none : nullptr);
  }
  if (fault_ && fault_->kind == FaultKind::Malformed && tokens_ == fault_->after_tokens + 1) {
    event_ += "data: {\"id\":\"broken\",\"choices\":[{\n\n";
  }
  const Usage so_far = request_.continuous_usage ? usage() : Usage();
  shape_->token(event_, choice.index, piece, token.last ? &plan : nullptr,
                request_.continuous_usage ? &so_far : nullptr,
                token.first ? &request_.prompts[choice.prompt] : nullptr);
  if (token.last && !shape_->finish_rides_on_token()) {
    shape_->close_choice(event_, choice.index, plan);
  }
  append_event();
  wake_.notify();
}

void Generation::append_event() {
  connection_.append_chunk(pending_, event_);
  event_.clear();
  if (fault_ && fault_->kind == FaultKind::Slow) pending_ends_.push_back(pending_.size());
}

asio::awaitable<bool> Generation::write_pending() {
  const std::string bytes = std::exchange(pending_, {});
  const std::vector<std::size_t> ends = std::exchange(pending_ends_, {});
  if (ends.empty()) co_return co_await connection_.write(bytes);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    co_await sleep_ms(fault_->delay_ms);
    if (!co_await connection_.write(std::string_view(bytes).substr(begin, end - begin))) {
      co_return false;
    }
    begin = end;
  }
  co_return true;
}

asio::awaitable<void> Generation::stream_answer() {
  while (true) {
    while (pending_.empty() && unfinished_ > 0 && !struck_) co_await wake_.wait();
    if (pending_.empty()) break;
    if (!co_await write_pending()) co_return;
  }
  if (struck_) {
    co_await strike_in_stream();
    co_return;
  }
  if (const auto taken = co_await await_transfers(); !taken) {
    co_await fail_with(taken.error());
    co_return;
  }
  shape_->extension(event_, finished(), usage());
  if (request_.include_usage) shape_->usage(event_, usage());
  ResponseShape::done(event_);
  append_event();
  pending_ends_.clear();
  if (!co_await write_pending()) co_return;
  ended_ = co_await connection_.end_stream();
  ++services_.engine.counters().finished;
}

// SGLang's word for a request that was aborted by its name is an answer that ends so.
asio::awaitable<void> Generation::answer_aborted() {
  if (request_.stream) {
    shape_->abort(event_);
    ResponseShape::done(event_);
    append_event();
    if (co_await connection_.write(std::exchange(pending_, {}))) co_await connection_.end_stream();
  } else {
    co_await connection_.send_json(200, shape_->aborted(usage()));
  }
}

asio::awaitable<void> Generation::strike_in_stream() {
  switch (fault_->kind) {
    case FaultKind::Cut:
      connection_.reset();
      co_return;
    case FaultKind::HangStream:
      co_await connection_.until_closed();
      co_return;
    case FaultKind::Die:
      std::_Exit(kFaultExitCode);
    default:
      co_await fail_with(Error(Errc::Internal, "simulated fault: the engine failed"));
  }
}

asio::awaitable<void> Generation::answer_whole() {
  while (unfinished_ > 0 && !struck_) co_await wake_.wait();
  if (struck_) {
    co_await strike_in_stream();
    co_return;
  }
  if (const auto taken = co_await await_transfers(); !taken) {
    co_await fail_with(taken.error());
    co_return;
  }
  const std::vector<FinishedChoice> done = finished();
  const bool prefill = request_.phase == Phase::Prefill;
  const bool vllm = services_.options.engine == model::Engine::Vllm;
  const std::string body =
      shape_->whole(done, usage(), vllm && prefill ? kv_transfer_params(choices_.front()) : "");

  const FaultKind fault = fault_ ? fault_->kind : FaultKind::Status;
  if (fault == FaultKind::Slow) co_await sleep_ms(fault_->delay_ms);
  if (fault == FaultKind::Cut) {
    co_await connection_.send_half(body);
    connection_.reset();
    co_return;
  }
  const std::string_view sent =
      fault == FaultKind::Malformed ? std::string_view(R"({"id":"broken","choices":[{)") : body;
  ended_ = co_await connection_.send_json(200, sent);
  ++services_.engine.counters().finished;
}

// An answer that has begun as a stream fails inside it, as the engines do.
asio::awaitable<void> Generation::fail_with(Error error) {
  ++services_.engine.counters().failed;
  const model::Engine engine = services_.options.engine;
  withdraw_sequences();
  if (engine == model::Engine::Sglang && is_stumble(error)) {
    co_await connection_.send_failure();
    co_return;
  }
  if (!shape_ || !request_.stream) {
    co_await connection_.send_json(error.http_status(), error_body(engine, error),
                                   retry_hint(error.http_status()));
    co_return;
  }
  event_ = fmt::format("data: {}\n\n", error_body(engine, error, true));
  ResponseShape::done(event_);
  append_event();
  if (co_await connection_.write(pending_)) co_await connection_.end_stream();
}

// Before the first token.
Usage Generation::prompt_usage() const {
  Usage before = usage();
  before.completion_tokens = 0;
  return before;
}

Usage Generation::usage() const {
  Usage usage;
  const std::uint64_t block = services_.options.block_size;
  std::size_t counted = request_.prompts.size();  // no prompt counted yet
  for (const Choice& choice : choices_) {
    usage.completion_tokens += choice.cursor.produced();
    if (choice.prompt == counted) continue;
    counted = choice.prompt;
    usage.prompt_tokens += request_.prompts[choice.prompt].size();
    usage.cached_tokens += choice.cached_tokens;
    const std::uint64_t kept = request_.prompts[choice.prompt].size() / block * block;
    if (kept > choice.cached_tokens) usage.created_cache_tokens += kept - choice.cached_tokens;
  }
  return usage;
}

std::vector<FinishedChoice> Generation::finished() const {
  std::vector<FinishedChoice> done;
  done.reserve(choices_.size());
  for (const Choice& choice : choices_) done.push_back(finished(choice));
  return done;
}

FinishedChoice Generation::finished(const Choice& choice) const {
  const AnswerPlan& plan = choice.cursor.plan();
  FinishedChoice done{.index = choice.index,
                      .text = choice.text,
                      .finish = plan.finish,
                      .matched_stop = plan.matched_stop,
                      .hash = plan.hash,
                      .begun = plan.begun,
                      .count = choice.cursor.produced(),
                      .tokens = choice.tokens,
                      .prompt = &request_.prompts[choice.prompt],
                      .disaggregated_params = {}};
  if (request_.limits.tool_call) {
    done.text = (plan.begun == 0 ? "{\"text\":\"" : "") + choice.text;
    if (plan.finish == Finish::ToolCalls) done.text += "\"}";
  }
  if (services_.options.engine == model::Engine::Trtllm && !choice.kept_key.empty()) {
    done.disaggregated_params = disaggregated_params(choice);
  }
  return done;
}

}  // namespace baton::sim
