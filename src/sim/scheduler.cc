// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/scheduler.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

Scheduler::Scheduler(const Options& options, BlockPool& pool, SequenceId first_id)
    : options_(options), pool_(pool), next_id_(first_id) {}

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
  const std::uint64_t prefill_tokens = admit();
  in_step_.clear();
  std::ranges::copy_if(order_, std::back_inserter(in_step_),
                       [this](SequenceId id) { return !running_.at(id).held; });
  if (in_step_.empty()) return std::nullopt;

  double ms =
      options_.decode_ms + options_.decode_ms_per_seq * static_cast<double>(in_step_.size());
  if (options_.prefill_tokens_per_second > 0) {
    ms += 1000.0 * static_cast<double>(prefill_tokens) / options_.prefill_tokens_per_second;
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ms * jitter() * 1e6));
}

std::vector<TokenProduced> Scheduler::finish_step() {
  std::vector<TokenProduced> produced;
  produced.reserve(in_step_.size());
  for (const SequenceId id : in_step_) {
    const auto found = running_.find(id);
    if (found == running_.end() || found->second.held) continue;  // left during the step
    Running& sequence = found->second;
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

std::uint64_t Scheduler::admit() {
  std::uint64_t prefill_tokens = 0;
  while (!waiting_.empty() && running_.size() < options_.max_seqs) {
    auto& [id, spec] = waiting_.front();
    auto allocation = pool_.allocate(spec.prompt, spec.output_tokens, spec.scope);
    if (!allocation) break;
    allocation->cached_tokens = std::max(allocation->cached_tokens, spec.fetched_tokens);
    prefill_tokens +=
        spec.prompt.size() - std::min<std::size_t>(spec.prompt.size(), allocation->cached_tokens);
    order_.push_back(id);
    running_.emplace(id, Running{std::move(spec), std::move(*allocation)});
    waiting_.pop_front();
  }
  return prefill_tokens;
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
