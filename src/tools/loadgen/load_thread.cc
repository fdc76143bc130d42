// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/load_thread.h"

#include "net/await.h"
#include "tools/loadgen/answer_reader.h"
#include "tools/loadgen/arrivals.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace baton::loadgen {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Pause of a closed-loop user after a refused or failed request.
constexpr milliseconds kPauseAfterFailure{100};
constexpr milliseconds kLongestPause{1000};

bool is_refusal(int status) { return status == 429 || status == 503; }

Ending ending_of(const Result<void>& sent, const AnswerReader& answer) {
  if (!sent && sent.error().code() == Errc::ClientGone) return Ending::Cut;
  if (is_refusal(answer.status())) return Ending::Refused;
  const bool whole = sent.has_value() && answer.error().empty() && answer.done();
  return whole ? Ending::Completed : Ending::Failed;
}

std::string kind_of(const Result<void>& sent, const AnswerReader& answer) {
  if (!answer.error().empty()) return answer.error();
  return sent ? "unfinished" : sent.error().message();
}

Target target_of(const Options& options) {
  return {.ttft_ms = options.slo_ttft_ms, .itl_ms = options.slo_itl_ms};
}

}  // namespace

LoadThread::LoadThread(const Run& run, unsigned index)
    : run_(run),
      index_(index),
      client_(io_, deadlines_, run.server, cut_),
      tasks_(io_,
             [this](std::exception_ptr thrown) {
               const locks::Lock lock(mutex_);
               problem_ = std::move(thrown);
             }),
      tally_(target_of(run.plan.options), run.plan.options.samples,
             mixed({run.plan.options.workload.seed, index})) {}

LoadThread::~LoadThread() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

void LoadThread::start() {
  if (run_.plan.open_loop) {
    tasks_.spawn(arrivals());
  } else {
    const std::uint32_t lanes = *run_.plan.options.concurrency;
    for (std::uint32_t i = index_; i < lanes; i += run_.plan.options.threads) tasks_.spawn(lane());
  }
  thread_ = std::thread([this] { io_.run(); });
}

void LoadThread::finish() {
  asio::post(io_, [this] { finish_.request({Errc::ShuttingDown, "the run is over"}); });
}

void LoadThread::cut() {
  finish();
  asio::post(io_, [this] { cut_.request({Errc::ShuttingDown, "the run is cut"}); });
}

void LoadThread::join() {
  asio::post(io_, [this] { deadlines_.stop(); });
  if (!idle()) io_.stop();
  if (thread_.joinable()) thread_.join();
}

std::exception_ptr LoadThread::problem() const {
  const locks::Lock lock(mutex_);
  return problem_;
}

Tally LoadThread::tally() const {
  const locks::Lock lock(mutex_);
  return tally_;
}

void LoadThread::add_to(Live& live) const {
  const locks::Lock lock(mutex_);
  live.sent += tally_.all_sent;
  live.ended += tally_.all_ended;
  live.refused += tally_.refused;
  live.failed += tally_.failed;
  live.ttft.merge(tally_.ttft);
}

awaitable<bool> LoadThread::sleep_until(Clock::time_point time) {
  if (finish_.requested()) co_return false;
  asio::steady_timer timer(io_, time);
  const Cancellation::Listener wakes(finish_, [&timer] { timer.cancel(); });
  co_await timer.async_wait(net::kAwait);
  co_return !finish_.requested();
}

awaitable<void> LoadThread::lane() {
  const auto size = run_.workload.size();
  while (!finish_.requested() && !run_.budget.spent()) {
    const std::uint64_t number = run_.budget.take_conversation();
    if (size && number >= *size) co_return;
    const Outcome outcome = co_await converse(number, Clock::now());
    if (outcome.leave_alone > milliseconds(0))
      co_await sleep_until(Clock::now() + outcome.leave_alone);
  }
}

awaitable<void> LoadThread::arrivals() {
  const Options& options = run_.plan.options;
  const auto size = run_.workload.size();
  // The rate is of requests, and each conversation makes several.
  const bool talks = options.workload.kind == WorkloadKind::MultiTurn;
  const double rate = options.rate.value_or(1) / (talks ? options.workload.turns : 1);
  ArrivalTimes times(options.arrivals, rate, options.workload.seed);
  for (std::uint64_t number = 0;; ++number) {
    if ((size && number >= *size) || (run_.plan.requests && number >= *run_.plan.requests))
      co_return;
    const auto due = size ? run_.workload.begins(number).value_or(times.next()) : times.next();
    if (run_.plan.duration && due >= *run_.plan.duration) co_return;
    if (number % options.threads != index_) continue;
    if (!co_await sleep_until(run_.start + due)) co_return;
    if (run_.budget.in_flight() >= options.max_in_flight) {
      if (!run_.budget.take_request()) co_return;
      const locks::Lock lock(mutex_);
      tally_.not_sent();
      continue;
    }
    tasks_.spawn(conversation_at(number, run_.start + due));
  }
}

awaitable<void> LoadThread::conversation_at(std::uint64_t number, Clock::time_point due) {
  co_await converse(number, due);
}

awaitable<LoadThread::Outcome> LoadThread::converse(std::uint64_t number, Clock::time_point due) {
  const Conversation talk = run_.workload.conversation(number);
  std::vector<Piece> said;
  Outcome outcome;
  for (const Turn& turn : talk.turns) {
    if (turn.think.count() > 0) {
      due = Clock::now() + turn.think;
      if (!co_await sleep_until(due)) co_return Outcome{};
    }
    if (finish_.requested()) co_return Outcome{};
    const auto ticket = run_.budget.take_request();
    if (!ticket) co_return Outcome{};
    said.insert(said.end(), turn.says.begin(), turn.says.end());
    outcome = co_await ask(talk, turn, said, due, *ticket);
    if (outcome.ending != Ending::Completed) co_return outcome;
  }
  co_return outcome;
}

// One request under way: fills the record as the answer comes.
struct LoadThread::Request {
  LoadThread& thread;
  RequestRecord record;

  void on_token() {
    const nanoseconds now = thread.since_start();
    const locks::Lock lock(thread.mutex_);
    if (record.events++ == 0) {
      record.first_token = now;
      thread.tally_.first_token(now, now - record.sent, record.measured);
    } else {
      thread.tally_.next_token(now, now - record.last_token, record.measured);
    }
    record.last_token = now;
  }
};

awaitable<LoadThread::Outcome> LoadThread::ask(const Conversation& talk, const Turn& turn,
                                               std::vector<Piece>& said, Clock::time_point due,
                                               std::uint64_t ticket) {
  const Plan& plan = run_.plan;
  const bool last = &turn == &talk.turns.back();
  std::string body = run_.bodies.write(said, turn.output_tokens);
  const std::string session = plan.options.session_ids
                                  ? fmt::format("x-baton-session-id: bench-{}-{}\r\n",
                                                plan.options.workload.seed, talk.number)
                                  : std::string();
  Request request{*this, {}};
  RequestRecord& record = request.record;
  record.sent = since_start();
  record.measured = ticket >= plan.warmup_requests && record.sent >= plan.warmup_time;
  {
    const locks::Lock lock(mutex_);
    tally_.sent(record.sent, record.sent - (due - run_.start), record.measured);
  }
  AnswerReader answer(last ? Keep::Nothing : Keep::Text, [&request] { request.on_token(); });
  const Listener listener{
      .on_head =
          [&answer, &body](const wire::ResponseHead& head) {
            answer.on_head(head);
            std::string().swap(body);  // thousands of long prompts need not wait for their answers
          },
      .on_body = [&answer](std::string_view bytes) { answer.on_body(bytes); }};
  run_.budget.begin();
  const Result<void> sent = co_await client_.send(
      {.method = "POST",
       .path = plan.options.api == Api::Chat ? "/v1/chat/completions" : "/v1/completions",
       .body = body,
       .headers = session,
       .timeout = plan.options.timeout},
      listener);
  run_.budget.end();

  record.ended = since_start();
  record.ending = ending_of(sent, answer);
  if (record.ending != Ending::Completed) record.error = kind_of(sent, answer);
  record.retry_after = answer.retry_after().has_value();
  record.prefill_worker = answer.prefill_worker();
  record.decode_worker = answer.decode_worker();
  for (const Piece& piece : said) record.prompt_tokens += piece.tokens;
  record.output_tokens = answer.events();
  if (answer.usage()) {
    record.prompt_tokens = answer.usage()->prompt_tokens;
    record.output_tokens = answer.usage()->completion_tokens;
    record.cached_tokens = answer.usage()->cached_tokens;
  }
  {
    const locks::Lock lock(mutex_);
    tally_.ended(record);
  }
  if (!last) {
    said.push_back({.speaker = Piece::Speaker::Assistant,
                    .key = mixed({talk.number, said.size()}),
                    .tokens = static_cast<std::uint32_t>(record.output_tokens),
                    .text = answer.text(),
                    .ids = answer.ids()});
  }
  Outcome outcome{.ending = record.ending};
  if (record.ending == Ending::Refused || record.ending == Ending::Failed) {
    const milliseconds wanted = answer.retry_after().value_or(std::chrono::seconds(0));
    outcome.leave_alone = std::clamp(wanted, kPauseAfterFailure, kLongestPause);
  }
  co_return outcome;
}

}  // namespace baton::loadgen
