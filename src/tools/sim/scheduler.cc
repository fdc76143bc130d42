// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/scheduler.h"

#include "tools/sim/engine_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace baton::sim {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Scheduler::Scheduler(const Options& options, BlockPool& pool, SequenceId first_id)
    : options_(options), model_(step_model(options)), pool_(pool), next_id_(first_id) {}

SequenceId Scheduler::submit(SequenceSpec spec) {
  const SequenceId id = next_id_++;
  waiting_.emplace_back(id, std::move(spec));
  return id;
}

bool Scheduler::fits(std::size_t prompt_tokens, std::uint32_t output_tokens) const {
  return pool_.blocks_for(prompt_tokens + output_tokens) <= pool_.total();
}

void Scheduler::abort(SequenceId id) {
  if (const auto found = running_.find(id); found != running_.end()) {
    cache_at_end(found->second);
    pool_.release(found->second.allocation.blocks);
    running_.erase(found);
    return;
  }
  std::erase_if(waiting_, [id](const auto& entry) { return entry.first == id; });
}

void Scheduler::hold(SequenceId id) {
  if (const auto found = running_.find(id); found != running_.end()) found->second.held = true;
}

std::optional<std::chrono::nanoseconds> Scheduler::begin_step() {
  std::erase_if(order_, [this](SequenceId id) { return !running_.contains(id); });
  in_step_.clear();
  std::uint64_t budget = options_.max_batched_tokens > 0 ? options_.max_batched_tokens : kNoLimit;
  load_ = {};
  go_on(budget);
  admit(budget);
  if (in_step_.empty()) return std::nullopt;
  load_.sequences = in_step_.size();
  return std::chrono::nanoseconds(std::llround(model_.ms(load_) * jitter() * 1e6));
}

std::vector<TokenProduced> Scheduler::finish_step() {
  std::vector<TokenProduced> produced;
  produced.reserve(in_step_.size());
  for (const SequenceId id : in_step_) {
    const auto found = running_.find(id);
    if (found == running_.end() || found->second.held) continue;  // left during the step
    Running& sequence = found->second;
    if (!decodes(sequence)) continue;  // the rest of its prompt is still to come
    TokenProduced token{.sequence = id,
                        .first = sequence.produced == 0,
                        .last = ++sequence.produced >= sequence.spec.output_tokens,
                        .cached_tokens = sequence.allocation.cached_tokens,
                        .kept_blocks = {}};
    // vLLM's blocks can be found as they become full, the others' when the request ends.
    if (options_.engine == model::Engine::Vllm) cache_output(sequence);
    if (token.last) {
      cache_at_end(sequence);
      if (sequence.spec.keep_blocks) {
        token.kept_blocks = std::move(sequence.allocation.blocks);
      } else {
        pool_.release(sequence.allocation.blocks);
      }
      running_.erase(found);
    }
    produced.push_back(std::move(token));
  }
  in_step_.clear();
  return produced;
}

// The KV of an output token is computed in the step after the one that produced it.
void Scheduler::cache_output(Running& sequence) {
  const std::uint32_t computed =
      std::min(std::max(sequence.produced, 1U) - 1, sequence.spec.answer_tokens);
  std::vector<TokenId> tokens;
  for (; sequence.computed_output < computed; ++sequence.computed_output) {
    tokens.push_back(output_token(sequence.spec.answer.hash,
                                  sequence.spec.answer.begun + sequence.computed_output));
  }
  if (!tokens.empty()) pool_.append(sequence.allocation, tokens);
}

void Scheduler::cache_at_end(Running& sequence) {
  cache_output(sequence);
  if (options_.keeps_kv_events() && !sequence.spec.keep_blocks) {
    pool_.cache_partial(sequence.allocation);
  }
}

// Those that decode get their token before any prompt gets what is left.
void Scheduler::go_on(std::uint64_t& budget) {
  std::vector<Running*> prompts;
  for (const SequenceId id : order_) {
    Running& sequence = running_.at(id);
    if (sequence.held) continue;
    if (decodes(sequence)) {
      load_.add_decode(sequence.spec.prompt.size() + sequence.produced);
    } else {
      prompts.push_back(&sequence);
    }
    in_step_.push_back(id);
  }
  budget -= std::min(budget, load_.decoding);
  for (Running* sequence : prompts) prefill(*sequence, budget);
}

void Scheduler::admit(std::uint64_t& budget) {
  while (!waiting_.empty() && running_.size() < options_.max_seqs && budget > 0) {
    auto& [id, spec] = waiting_.front();
    auto allocation = pool_.reserve(spec.prompt, spec.output_tokens, spec.scope);
    if (!allocation) break;
    allocation->cached_tokens = std::max(allocation->cached_tokens, spec.fetched_tokens);
    order_.push_back(id);
    in_step_.push_back(id);
    const auto added = running_.emplace(id, Running{std::move(spec), std::move(*allocation)}).first;
    prefill(added->second, budget);
    waiting_.pop_front();
  }
}

// The next piece of its prompt, as much as the budget allows, and for nothing what was cached or
// fetched.
void Scheduler::prefill(Running& sequence, std::uint64_t& budget) {
  const std::span<const TokenId> prompt = sequence.spec.prompt;
  const std::size_t have = sequence.allocation.tokens;
  const std::size_t from =
      std::min(prompt.size(), std::max<std::size_t>(have, sequence.allocation.cached_tokens));
  const std::uint64_t computed = std::min<std::uint64_t>(prompt.size() - from, budget);
  pool_.append(sequence.allocation, prompt.subspan(have, from + computed - have));
  if (from < prompt.size()) {
    load_.add_piece(computed, from);
  } else {
    load_.add_decode(from);  // a prompt of which nothing is to be computed decodes at once
  }
  budget -= std::min(budget, std::max<std::uint64_t>(computed, 1));
}

// Up to 10 % either way, the same for the same seed and step; none with seed 0.
double Scheduler::jitter() {
  if (options_.seed == 0) return 1.0;
  std::uint64_t x = options_.seed * 0x9E3779B97F4A7C15U + ++steps_;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x ^= x >> 31;
  return 0.9 + 0.2 * static_cast<double>(x % 1000) / 1000.0;
}

}  // namespace baton::sim
