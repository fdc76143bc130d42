// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/generation.h"

#include "net/await.h"
#include "tools/sim/dialect.h"
#include "tools/sim/vllm_release.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using asio::experimental::awaitable_operators::operator||;
using nlohmann::json;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// SGLang's scheduler ends with an error, and the server with it.
constexpr int kSchedulerExitCode = 131;

bool tells_of_refusals(const Options& options) {
  return options.engine != model::Engine::Vllm || options.release() >= kVllmKeepsAfterStop;
}

// vLLM's server tells the prefill worker of requests that fail in it or are left while they wait, but
// not of those that it turns away at its door.
bool tells_prefill_after(const Options& options, const Fault& fault) {
  if (options.engine != model::Engine::Vllm) return false;
  if (fault.kind == FaultKind::Hang) return true;
  constexpr std::array kAtTheDoor{401, 403, 429, 503};
  return fault.kind == FaultKind::Status && tells_of_refusals(options) &&
         std::ranges::find(kAtTheDoor, fault.status) == kAtTheDoor.end();
}

}  // namespace

Generation::Generation(GenerationServices& services, Connection& connection, Api api)
    : services_(services), connection_(connection) {
  request_.api = api;
}

Generation::~Generation() {
  if (!name_.empty()) services_.names.remove(name_);
  withdraw_sequences();
  if (rank_ == nullptr) return;
  --rank_->requests;
  if (!request_.scope.lora.empty()) --rank_->adapters[request_.scope.lora];
}

asio::awaitable<void> Generation::serve(const HttpRequest& http) {
  const Options& options = services_.options;
  Counters& counters = services_.engine.counters();
  ++counters.requests;
  number_ = services_.next_id++;
  const json body = json::parse(http.body, nullptr, false);
  const Phase phase = phase_of(options.engine, options.role, body);
  const std::uint64_t log_entry = services_.log.add(http, phase);
  fault_ = services_.faults.strike(phase, std::chrono::steady_clock::now(), http.body);
  const auto executor = co_await asio::this_coro::executor;
  if (fault_ && co_await strike_before_engine()) {
    if (tells_prefill_after(options, *fault_) && read(http, body)) release_sources(executor);
    co_return;
  }

  request_.id = fmt::format("{:016x}{:016x}", number_, options.port);
  if (const Result<void> understood = read(http, body); !understood) {
    if (!is_validation(understood.error()) && tells_of_refusals(options)) release_sources(executor);
    co_await fail_with(understood.error());
    co_return;
  }
  if (const Result<void> named = take_name(); !named) {
    if (tells_of_refusals(options)) release_sources(executor);
    co_await fail_with(named.error());
    co_return;
  }
  if (kills_engine()) std::_Exit(kSchedulerExitCode);
  take_rank(log_entry);
  if (request_.recompute) ++counters.recomputed;
  if (request_.with_token_ids) ++counters.with_token_ids;
  if (request_.token_mismatch) ++counters.token_mismatches;
  shape_ = make_response_shape(
      options, request_, response_id(options.engine, request_.api, request_.id), unix_seconds());
  for (const Meeting& meeting : request_.meetings) services_.engine.expect(meeting.key);

  co_await (connection_.until_closed() || produce() || until_aborted());
  if (ended_) co_return;
  if (aborted_) {
    co_await answer_aborted();
  } else {
    co_await until_noticed();
  }
  ++counters.aborted;
  ++rank_->stats.aborted;
  if (withdraw_sequences()) ++counters.cut_transfers;
  release_sources(executor);
}

// SGLang does not look whether its vocabulary has the ids of a prompt.
bool Generation::kills_engine() const {
  return services_.options.engine == model::Engine::Sglang &&
         std::ranges::any_of(request_.prompts, [](const std::vector<TokenId>& prompt) {
           return std::ranges::any_of(prompt, [](TokenId id) { return id >= kVocabularySize; });
         });
}

Result<void> Generation::take_name() {
  if (services_.options.engine != model::Engine::Sglang) return {};
  if (auto added = services_.names.add(request_.id, *this); !added) return added;
  name_ = request_.id;
  return {};
}

void Generation::abort_by_name() {
  aborted_ = true;
  abort_.notify();
}

asio::awaitable<void> Generation::until_aborted() {
  while (!aborted_) co_await abort_.wait();
}

asio::awaitable<void> Generation::until_noticed() {
  if (name_.empty()) co_return;
  if (const double pause = services_.options.disconnect_ms; pause > 0) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(from_ms(pause));
    co_await (timer.async_wait(net::kAwait) || until_aborted());
  }
  // The scheduler also aborts all requests whose names begin with this one.
  services_.names.remove(name_);
  services_.names.abort_all_like(std::exchange(name_, {}));
}

Result<void> Generation::read(const HttpRequest& http, const json& body) {
  const Options& options = services_.options;
  if (auto type = check_content_type(options.engine, http.header("content-type")); !type) {
    return type;
  }
  if (http.body.empty()) return fail(unreadable_body(options.engine, request_.api, nullptr));
  if (body.is_discarded()) return fail(unreadable_body(options.engine, request_.api, body));
  if (auto understood = read_request(
          options, request_.api, body, request_,
          {.rank = http.header("x-data-parallel-rank"), .request_id = http.header("x-request-id")},
          {services_.tokens, http.body});
      !understood) {
    return understood;
  }
  if (options.engine != model::Engine::Sglang) return check_capacity();
  // SGLang's scheduler finds that out, when a stream has its 200 already.
  if (const auto fits = check_capacity(); !fits && request_.late_refusal.empty())
    request_.late_refusal = fits.error().message();
  return {};
}

// Counted from now on, so that requests which arrive together spread over the ranks.
void Generation::take_rank(std::uint64_t log_entry) {
  EngineCore& engine = services_.engine;
  const auto asked = request_.meetings.empty() || !request_.meetings.front().rank
                         ? request_.rank
                         : request_.meetings.front().rank;
  rank_ = asked ? engine.ranks()[*asked].get() : &engine.least_loaded();
  ++rank_->requests;
  rank_->stats.request(request_.n);
  if (!request_.scope.lora.empty()) ++rank_->adapters[request_.scope.lora];
  services_.log.set_rank(log_entry, rank_->index());
}

asio::awaitable<void> Generation::produce() {
  if (request_.stream && !co_await connection_.begin_stream()) co_return;
  if (!request_.late_refusal.empty()) {
    co_await fail_with(Error(Errc::InvalidRequest, request_.late_refusal));
    co_return;
  }
  if (!request_.sources.empty()) {
    if (const auto received = co_await receive_kv(); !received) {
      co_await fail_with(received.error());
      co_return;
    }
  }
  submit();
  if (request_.stream) {
    co_await stream_answer();
  } else {
    co_await answer_whole();
  }
}

AnswerLimits Generation::limits_for(std::size_t prompt_tokens) const {
  AnswerLimits limits = request_.limits;
  const std::size_t rest = services_.options.max_model_len - prompt_tokens;
  limits.cap = std::min(request_.max_tokens.value_or(static_cast<std::uint32_t>(rest)),
                        static_cast<std::uint32_t>(rest));
  // These context workers stop after the first token whatever was asked; vLLM's is asked for one.
  if (request_.phase == Phase::Prefill && services_.options.engine != model::Engine::Vllm) {
    limits.cap = 1;
  }
  return limits;
}

Result<void> Generation::check_capacity() const {
  for (const auto& prompt : request_.prompts) {
    const AnswerLimits limits = limits_for(prompt.size());
    for (const AnswerOrigin& origin : answer_origins(prompt, request_.seed, request_.n)) {
      if (services_.engine.ranks().front()->fits(prompt.size(),
                                                 plan_answer(origin, limits).tokens)) {
        continue;
      }
      return fail(Errc::InvalidRequest, "the request needs more KV cache blocks than there are");
    }
  }
  return {};
}

void Generation::submit() {
  std::uint32_t index = 0;
  choices_.reserve(request_.prompts.size() * request_.n);
  for (std::size_t i = 0; i < request_.prompts.size(); ++i) {
    const std::vector<TokenId>& prompt = request_.prompts[i];
    const AnswerLimits limits = limits_for(prompt.size());
    for (const AnswerOrigin& origin : answer_origins(prompt, request_.seed, request_.n)) {
      choices_.push_back({.index = index++,
                          .prompt = i,
                          .rank = rank_,
                          .cursor = AnswerCursor(plan_answer(origin, limits)),
                          .sequence = 0,
                          .text = {},
                          .tokens = {},
                          .cached_tokens = 0,
                          .times = {.arrived = arrived_},
                          .held = {},
                          .kept_key = {},
                          .kept_blocks = {}});
    }
  }
  unfinished_ = choices_.size();
  for (Choice& choice : choices_) {
    const std::vector<TokenId>& prompt = request_.prompts[choice.prompt];
    const AnswerPlan& plan = choice.cursor.plan();
    if (!request_.meetings.empty() && request_.meetings[choice.index].rank) {
      choice.rank = services_.engine.ranks()[*request_.meetings[choice.index].rank].get();
    }
    // An answer that is at its end takes a step, too: that of the end token.
    choice.sequence = choice.rank->submit({.prompt = prompt,
                                           .output_tokens = std::max(plan.tokens, 1U),
                                           .fetched_tokens = fetched_tokens(prompt.size()),
                                           .keep_blocks = keeps_blocks(plan),
                                           .answer = {plan.hash, plan.begun},
                                           .answer_tokens = plan.tokens,
                                           .scope = request_.scope},
                                          *this);
  }
}

void Generation::on_token(TokenProduced& token) {
  Choice& choice = *std::ranges::find(choices_, token.sequence, &Choice::sequence);
  EngineRank& rank = *choice.rank;
  if (struck_) {
    rank.give_back(token.kept_blocks);
    return;
  }
  if (breaks_after_tokens() && tokens_ == fault_->after_tokens) {
    struck_ = true;
    rank.give_back(token.kept_blocks);
    for (const Choice& other : choices_) other.rank->hold(other.sequence);
    wake_.notify();
    return;
  }
  ++tokens_;
  ++rank.tokens.generated;
  rank.stats.token(choice.times, token.first);
  if (token.first) {
    choice.cached_tokens = token.cached_tokens;
    rank.tokens.prompt += request_.prompts[choice.prompt].size();
    rank.tokens.cached += token.cached_tokens;
  }
  AnswerCursor::Piece piece = choice.cursor.next();
  if ((request_.return_token_ids || request_.logprobs || request_.sglang.output_ids) && piece.token)
    choice.tokens.push_back(*piece.token);
  if (token.last) {
    --unfinished_;
    const AnswerPlan& plan = choice.cursor.plan();
    const std::size_t prompt = request_.prompts[choice.prompt].size();
    rank.stats.finished(choice.times,
                        {.prompt_tokens = prompt,
                         .cached_tokens = choice.cached_tokens,
                         .output_tokens = plan.tokens,
                         .most_tokens = limits_for(prompt).cap},
                        plan.finish);
    if (!token.kept_blocks.empty()) keep_for_decode(choice, token);
  }
  if (request_.stream) {
    stream_token(choice, token, std::move(piece));
  } else {
    choice.text += piece.text;
    if (unfinished_ == 0) wake_.notify();
  }
}

}  // namespace baton::sim
