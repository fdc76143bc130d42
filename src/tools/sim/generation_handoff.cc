// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// A generation request's part in a hand-off: what it keeps for others, and takes from them.
#include "tools/sim/dialect.h"
#include "tools/sim/generation.h"
#include "tools/sim/handoff_peer.h"
#include "tools/sim/task.h"
#include "tools/sim/vllm_release.h"

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using model::HandoffMode;
using nlohmann::ordered_json;

// Members of kv_transfer_params, by the release that has brought them; where several have passed in between, the one that has them.
constexpr std::array<std::pair<const char*, model::Version>, 7> kParamsSince{
    {{"remote_request_id", kVllmTellsRequestId},
     {"remote_num_tokens", {.major = 0, .minor = 21, .patch = 0}},
     {"remote_blocks_expiry_time", {.major = 0, .minor = 26, .patch = 0}},
     {"transfer_mode", {.major = 0, .minor = 28, .patch = 0}},
     {"pp_size", {.major = 0, .minor = 28, .patch = 0}},
     {"dcp_size", {.major = 0, .minor = 32, .patch = 0}},
     {"remote_prefill_cached_tokens", {.major = 0, .minor = 32, .patch = 0}}}};

// A prompt that a prefill worker writes, and the request that waits for it.
struct Push {
  Wakeup arrived;
  std::optional<Result<std::vector<TokenId>>> tokens;
  bool never = false;  // the prefill worker is gone: the push will not arrive
  bool awaited = true;
};

// The prefill worker was told where to write, and writes whatever becomes of the request.
asio::awaitable<void> receive_push(const Options& options, EngineCore& engine, HandoffSource source,
                                   std::shared_ptr<Push> push) {
  const std::string peer = source.engine_id;
  auto tokens = co_await fetch_prompt(options, std::move(source));
  if (tokens) engine.meet(peer);
  if (!push->awaited && !tokens) ++engine.counters().stranded;
  // Only one that is not known yet is asked whether it is there.
  push->never = !tokens && tokens.error().code() == Errc::EngineUnreachable && engine.has_met(peer);
  if (push->never) co_return;
  push->tokens = std::move(tokens);
  push->arrived.notify();
}

asio::awaitable<Result<std::vector<TokenId>>> await_push(const Options& options, EngineCore& engine,
                                                         HandoffSource source) {
  const auto push = std::make_shared<Push>();
  struct Leave {
    Push& push;
    Counters& counters;
    ~Leave() {
      push.awaited = false;
      if (push.never) ++counters.stranded;
    }
  } leave{*push, engine.counters()};
  // Outlives the task: options
  spawn(co_await asio::this_coro::executor, receive_push(options, engine, std::move(source), push));
  while (!push->tokens) co_await push->arrived.wait();
  co_return std::move(*push->tokens);
}

asio::awaitable<void> release_all(std::vector<HandoffSource> sources) {
  for (HandoffSource& source : sources) co_await release_prompt(std::move(source));
}

}  // namespace

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
    const auto began = std::chrono::steady_clock::now();
    auto fetched = services_.options.mode() == HandoffMode::NixlPush
                       ? co_await await_push(services_.options, engine, request_.sources[i])
                       : co_await fetch_prompt(services_.options, request_.sources[i]);
    if (!fetched) {
      ++engine.counters().refused;
      co_return fail(Errc::Internal,
                     fmt::format("KV transfer failed: {}", fetched.error().message()));
    }
    sources_taken_ = i + 1;
    ++engine.counters().fetched;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    rank_->stats.fetched(took.count(), fetched->size(),
                         rank_->pool().blocks_for(static_cast<std::uint32_t>(fetched->size())));
    // Tokens behind the fetched ones are computed here, from this worker's own tokenizing.
    std::vector<TokenId>& prompt = request_.prompts[i / per_prompt];
    if (prompt.size() > fetched->size()) {
      fetched->insert(fetched->end(), prompt.begin() + static_cast<std::ptrdiff_t>(fetched->size()),
                      prompt.end());
    }
    prompt = std::move(*fetched);
  }
  if (request_.first_token) {
    const auto [hash, begun] = answer_origins(request_.prompts.front(), request_.seed, 1).front();
    if (*request_.first_token != output_token(hash, begun)) {
      ++engine.counters().refused;
      co_return fail(Errc::Internal, "first_gen_tokens does not continue the prompt");
    }
  }
  co_return Result<void>();
}

// vLLM computes the last prompt token again; the others get the first output token with the KV.
std::uint32_t Generation::fetched_tokens(std::size_t prompt_tokens) const {
  if (request_.sources.empty()) return 0;
  const auto count = static_cast<std::uint32_t>(prompt_tokens);
  return services_.options.engine == model::Engine::Vllm ? count - 1 : count;
}

// Whether the blocks of a prefill leg that ends like this are there for a decode worker.
bool Generation::keeps_blocks(const AnswerPlan& plan) const {
  if (request_.phase != Phase::Prefill) return false;
  const bool by_length = plan.finish == Finish::Length;
  switch (services_.options.mode()) {
    case HandoffMode::ContextFirst:
      // The answer is complete and needs no decode worker, who then learns of nothing to fetch.
      return by_length;
    case HandoffMode::Mooncake:
      // Its decode worker waits all the same. Stop strings are no concern of the engine's core.
      return by_length || request_.limits.ignore_eos;
    case HandoffMode::NixlPull:
      return by_length || services_.options.release() >= kVllmKeepsAfterStop;
    case HandoffMode::NixlPush:
      // Also if the first token ended the request, so that no decode worker needs it.
    case HandoffMode::Bootstrap:
    case HandoffMode::GenerationFirst:
      return true;
  }
  return false;
}

// vLLM's own name for a sequence, with a random end where others are told of it.
std::string Generation::internal_request_id(const Choice& choice) const {
  if (services_.options.release() < kVllmTellsRequestId)
    return fmt::format("{}-{}", shape_->id(), choice.index);
  return fmt::format("{}-{}-{:08x}", shape_->id(), choice.index, number_);
}

void Generation::keep_for_decode(Choice& choice, TokenProduced& token) {
  EngineCore& engine = services_.engine;
  const auto tokens = static_cast<std::uint32_t>(request_.prompts[choice.prompt].size());
  std::vector<BlockId> blocks = std::move(token.kept_blocks);
  // The block that only the generated token needed is of no use.
  const std::size_t carrying = choice.rank->pool().blocks_for(tokens);
  choice.rank->give_back({blocks.begin() + static_cast<std::ptrdiff_t>(carrying), blocks.end()});
  blocks.resize(carrying);
  choice.kept_blocks = blocks;
  if (!request_.meetings.empty()) {
    choice.kept_key = request_.meetings[choice.index].key;
  } else if (services_.options.engine == model::Engine::Vllm) {
    choice.kept_key = internal_request_id(choice);
  } else {
    choice.kept_key = fmt::format("ctx-{}", number_);
  }
  if (services_.options.mode() == HandoffMode::Bootstrap) {
    transfers_.push_back(std::make_unique<TransferWatch>());
    engine.watch(*choice.rank, choice.kept_key, transfers_.back().get());
  }
  engine.keep(*choice.rank, choice.kept_key, std::move(blocks), tokens);
}

// SGLang's prefill leg answers when its blocks have arrived at the decode worker.
asio::awaitable<Result<void>> Generation::await_transfers() {
  for (const auto& transfer : transfers_) {
    while (!transfer->ended) co_await transfer->changed.wait();
    if (!transfer->taken) {
      co_return fail(Errc::Internal, "KV transfer timed out: no decode worker took the blocks");
    }
  }
  co_return Result<void>();
}

bool Generation::withdraw_sequences() {
  if (ended_) return false;
  ended_ = true;
  bool cut = false;
  for (const Choice& choice : choices_) choice.rank->abort(choice.sequence);
  for (const Meeting& meeting : request_.meetings) {
    if (services_.engine.withdraw(meeting.key)) cut = true;
  }
  choices_.clear();
  return cut;
}

// An engine that drops a decode request notifies the prefill worker, if that has answered before.
// In the other modes the blocks stay until they are fetched or their lease ends.
void Generation::release_sources(const asio::any_io_executor& executor) {
  if (!services_.options.prefill_first()) return;
  request_.sources.erase(request_.sources.begin(),
                         request_.sources.begin() + static_cast<std::ptrdiff_t>(sources_taken_));
  spawn(executor, release_all(request_.sources));
}

// The parameters that vLLM's NIXL connectors return; null when nothing was kept, and always from
// Mooncake's.
std::string Generation::kv_transfer_params(const Choice& choice) const {
  const bool push = services_.options.mode() == HandoffMode::NixlPush;
  if (choice.kept_key.empty() || services_.options.mode() == HandoffMode::Mooncake) return "null";
  const model::Version release = services_.options.release();
  const ordered_json blocks(choice.kept_blocks);
  ordered_json params{
      {"do_remote_prefill", true},
      {"do_remote_decode", false},
      {"remote_block_ids", release < kVllmGroupsBlocks ? blocks : ordered_json::array({blocks})},
      {"remote_engine_id", choice.rank->engine_id()},
      {"remote_request_id", internal_request_id(choice)},
      {"remote_host", services_.self.host},
      {"remote_port", services_.self.port},
      {"tp_size", services_.options.tp_size},
      {"dcp_size", 1},
      {"pp_size", services_.options.pp_size},
      {"remote_num_tokens", request_.prompts[choice.prompt].size()},
      {"remote_blocks_expiry_time", nullptr},
      {"transfer_mode", push ? "push" : "pull"},
      {"remote_prefill_cached_tokens", choice.cached_tokens}};
  for (const auto& [name, since] : kParamsSince) {
    if (release < since) params.erase(name);
  }
  return params.dump();
}

std::string Generation::disaggregated_params(const Choice& choice) const {
  const HandoffSource source{.host = services_.self.host,
                             .port = services_.self.port,
                             .engine_id = choice.rank->engine_id(),
                             .key = choice.kept_key,
                             .blocks = choice.kept_blocks};
  const bool together = services_.options.mode() == HandoffMode::GenerationFirst;
  const AnswerPlan& plan = choice.cursor.plan();
  ordered_json first = ordered_json::array();
  if (plan.tokens > 0) first.push_back(output_token(plan.hash, plan.begun));
  return ordered_json{
      {"request_type", "context_only"},
      {"first_gen_tokens", first},
      {"first_gen_log_probs", nullptr},
      {"ctx_request_id",
       together ? ordered_json(*request_.disagg_request_id) : ordered_json(number_)},
      {"encoded_opaque_state", encode_opaque_state(source)},
      {"draft_tokens", nullptr},
      {"disagg_request_id", request_.disagg_request_id ? ordered_json(*request_.disagg_request_id)
                                                       : ordered_json(nullptr)},
      {"ctx_dp_rank", choice.rank->index()},
      {"ctx_info_endpoint", nullptr},
      {"schedule_style", together ? 1 : 0}}
      .dump();
}

}  // namespace baton::sim
