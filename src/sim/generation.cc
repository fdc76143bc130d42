// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/generation.h"

#include "sim/dialect.h"
#include "sim/handoff_peer.h"
#include "sim/task.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
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

// The response's id, with each engine's own idea of where it comes from.
std::string response_id(const Options& options, const GenerationRequest& request,
                        std::string_view header_id, std::uint64_t number) {
  const std::string made_up = fmt::format("{:016x}{:016x}", number, options.port);
  if (options.engine == model::Engine::Sglang) return request.id.empty() ? made_up : request.id;
  std::string id = made_up;
  if (options.engine == model::Engine::Vllm) {
    if (!header_id.empty()) {
      id = header_id;
    } else if (!request.id.empty()) {
      id = request.id;
    }
  }
  return (request.api == Api::Chat ? "chatcmpl-" : "cmpl-") + id;
}

asio::awaitable<void> release_sources(std::vector<HandoffSource> sources) {
  for (HandoffSource& source : sources) co_await release_prompt(std::move(source));
}

}  // namespace

Generation::Generation(GenerationServices& services, Connection& connection, Api api)
    : services_(services), connection_(connection) {
  request_.api = api;
}

Generation::~Generation() {
  withdraw_sequences();
  if (rank_ != nullptr) --rank_->requests;
}

asio::awaitable<void> Generation::serve(const HttpRequest& http) {
  const Options& options = services_.options;
  Counters& counters = services_.engine.counters();
  ++counters.requests;
  number_ = services_.next_id++;
  const json body = json::parse(http.body, nullptr, false);
  const Phase phase = phase_of(options.engine, options.role, body);
  const std::uint64_t log_entry = services_.log.add(http, phase);
  fault_ = services_.faults.strike(phase, std::chrono::steady_clock::now());
  if (fault_ && co_await strike_before_engine()) co_return;

  if (const Result<void> understood = read(http, body); !understood) {
    spawn(co_await asio::this_coro::executor, release_sources(request_.sources));
    co_await fail_with(understood.error());
    co_return;
  }
  take_rank(log_entry);
  if (request_.recompute) ++counters.recomputed;
  shape_.emplace(options.engine, request_,
                 response_id(options, request_, http.header("x-request-id"), number_),
                 options.model, unix_seconds());

  const auto executor = co_await asio::this_coro::executor;
  co_await (connection_.until_closed() || produce());
  if (ended_) co_return;
  ++counters.aborted;
  withdraw_sequences();
  // An engine that drops a decode request tells the prefill worker; SGLang's does not.
  if (options.engine != model::Engine::Sglang) {
    request_.sources.erase(request_.sources.begin(),
                           request_.sources.begin() + static_cast<std::ptrdiff_t>(sources_taken_));
    spawn(executor, release_sources(request_.sources));
  }
}

Result<void> Generation::read(const HttpRequest& http, const json& body) {
  const Options& options = services_.options;
  if (auto type = check_content_type(options.engine, http.header("content-type")); !type) {
    return type;
  }
  if (body.is_discarded()) return fail(Errc::InvalidJson, "the body is not valid JSON");
  if (auto understood =
          read_request(options, request_.api, body, request_, http.header("x-data-parallel-rank"));
      !understood) {
    return understood;
  }
  return check_capacity();
}

// Counted from now on, so that requests which arrive together spread over the ranks.
void Generation::take_rank(std::uint64_t log_entry) {
  EngineCore& engine = services_.engine;
  if (!request_.rooms.empty()) {
    rank_ = engine.ranks()[request_.rooms.front().rank].get();
  } else {
    rank_ = request_.rank ? engine.ranks()[*request_.rank].get() : &engine.least_loaded();
  }
  ++rank_->requests;
  services_.log.set_rank(log_entry, rank_->index());
}

asio::awaitable<void> Generation::produce() {
  if (request_.stream && !co_await connection_.begin_stream()) co_return;
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

asio::awaitable<Result<void>> Generation::receive_kv() {
  EngineCore& engine = services_.engine;
  struct Fetching {
    std::uint64_t& count;
    explicit Fetching(std::uint64_t& counter) : count(counter) { ++count; }
    ~Fetching() { --count; }
  } fetching(rank_->fetching);

  // SGLang moves the KV once for each choice of a prompt.
  const std::size_t per_prompt = request_.sources.size() / request_.prompts.size();
  for (std::size_t i = 0; i < request_.sources.size(); ++i) {
    auto fetched = co_await fetch_prompt(services_.options, request_.sources[i]);
    if (!fetched) {
      ++engine.counters().refused;
      co_return fail(Errc::Internal,
                     fmt::format("KV transfer failed: {}", fetched.error().message()));
    }
    sources_taken_ = i + 1;
    ++engine.counters().fetched;
    // What follows the fetched tokens is computed here, from this worker's own reading.
    std::vector<TokenId>& prompt = request_.prompts[i / per_prompt];
    if (prompt.size() > fetched->size()) {
      fetched->insert(fetched->end(), prompt.begin() + static_cast<std::ptrdiff_t>(fetched->size()),
                      prompt.end());
    }
    prompt = std::move(*fetched);
  }
  if (request_.first_token &&
      *request_.first_token != token_of(output_word(hash_prompt(request_.prompts.front()), 0))) {
    ++engine.counters().refused;
    co_return fail(Errc::Internal, "first_gen_tokens does not continue the prompt");
  }
  co_return Result<void>();
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
    const AnswerPlan plan = plan_answer(hash_prompt(prompt), limits_for(prompt.size()));
    if (!services_.engine.ranks().front()->fits(prompt.size(), plan.tokens)) {
      return fail(Errc::InvalidRequest, "the request needs more KV cache blocks than there are");
    }
  }
  return {};
}

void Generation::submit() {
  const bool prefill = request_.phase == Phase::Prefill;
  const bool sglang = services_.options.engine == model::Engine::Sglang;
  std::uint32_t index = 0;
  choices_.reserve(request_.prompts.size() * request_.n);
  for (std::size_t i = 0; i < request_.prompts.size(); ++i) {
    const std::vector<TokenId>& prompt = request_.prompts[i];
    const std::uint64_t hash = hash_prompt(prompt);
    const AnswerLimits limits = limits_for(prompt.size());
    for (std::uint32_t k = 0; k < request_.n; ++k) {
      choices_.push_back({.index = index++,
                          .prompt = i,
                          .rank = rank_,
                          .cursor = AnswerCursor(plan_answer(hash + k, limits)),
                          .sequence = 0,
                          .text = {},
                          .tokens = {},
                          .cached_tokens = 0,
                          .kept_key = {},
                          .kept_blocks = {}});
    }
  }
  unfinished_ = choices_.size();
  for (Choice& choice : choices_) {
    const std::vector<TokenId>& prompt = request_.prompts[choice.prompt];
    const AnswerPlan& plan = choice.cursor.plan();
    // An answer that is complete after the prefill needs no decode worker. SGLang's decode worker
    // waits for the blocks in any case.
    const bool keep = prefill && (sglang || plan.finish == Finish::Length);
    if (!request_.rooms.empty()) {
      choice.rank = services_.engine.ranks()[request_.rooms[choice.index].rank].get();
    }
    choice.sequence = choice.rank->submit({.prompt = prompt,
                                           .output_tokens = plan.tokens,
                                           .fetched_tokens = fetched_tokens(prompt.size()),
                                           .keep_blocks = keep},
                                          *this);
  }
}

// vLLM computes the last prompt token again; the others get the first output token with the KV.
std::uint32_t Generation::fetched_tokens(std::size_t prompt_tokens) const {
  if (request_.sources.empty()) return 0;
  const auto count = static_cast<std::uint32_t>(prompt_tokens);
  return services_.options.engine == model::Engine::Vllm ? count - 1 : count;
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
  if (token.first) {
    choice.cached_tokens = token.cached_tokens;
    rank.tokens.prompt += request_.prompts[choice.prompt].size();
    rank.tokens.cached += token.cached_tokens;
  }
  const AnswerCursor::Piece piece = choice.cursor.next();
  if (request_.return_token_ids) choice.tokens.push_back(piece.token);
  if (token.last) {
    --unfinished_;
    if (!token.kept_blocks.empty()) keep_for_decode(choice, token);
  }
  if (request_.stream) {
    stream_token(choice, token, piece);
  } else {
    choice.text += piece.text;
    if (unfinished_ == 0) wake_.notify();
  }
}

void Generation::keep_for_decode(Choice& choice, TokenProduced& token) {
  EngineCore& engine = services_.engine;
  const auto tokens = static_cast<std::uint32_t>(request_.prompts[choice.prompt].size());
  std::vector<BlockId> blocks = std::move(token.kept_blocks);
  // The block that only the generated token needed is of no use to anybody.
  const std::size_t carrying = choice.rank->pool().blocks_for(tokens);
  choice.rank->give_back({blocks.begin() + static_cast<std::ptrdiff_t>(carrying), blocks.end()});
  blocks.resize(carrying);
  choice.kept_blocks = blocks;
  switch (services_.options.engine) {
    case model::Engine::Vllm:
      choice.kept_key = fmt::format("{}-{}-{:08x}", shape_->id(), choice.index, number_);
      break;
    case model::Engine::Sglang:
      choice.kept_key = request_.rooms[choice.index].key;
      transfers_.push_back(std::make_unique<TransferWatch>());
      engine.watch(*choice.rank, choice.kept_key, transfers_.back().get());
      break;
    case model::Engine::Trtllm:
      choice.kept_key = fmt::format("ctx-{}", number_);
      break;
  }
  engine.keep(*choice.rank, choice.kept_key, std::move(blocks), tokens);
}

void Generation::withdraw_sequences() {
  if (ended_) return;
  ended_ = true;
  for (const Choice& choice : choices_) choice.rank->abort(choice.sequence);
  for (const Room& room : request_.rooms) services_.engine.withdraw(room.key);
  choices_.clear();
}

}  // namespace baton::sim
