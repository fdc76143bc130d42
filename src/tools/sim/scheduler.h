// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/answer.h"
#include "tools/sim/block_pool.h"
#include "tools/sim/options.h"
#include "tools/sim/step_model.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace baton::sim {

using SequenceId = std::uint64_t;

struct SequenceSpec {
  std::vector<TokenId> prompt;
  std::uint32_t output_tokens = 1;
  // Prompt tokens whose KV came from another worker and is not computed here.
  std::uint32_t fetched_tokens = 0;
  // The blocks of a finished prefill are handed to the caller instead of being released.
  bool keep_blocks = false;
  // Which tokens come out, for those that follow them in a later prompt.
  AnswerOrigin answer = {};
  std::uint32_t answer_tokens = 0;  // the end token is none
  CacheScope scope = {};
};

struct TokenProduced {
  SequenceId sequence = 0;
  bool first = false;
  bool last = false;
  std::uint32_t cached_tokens = 0;
  std::vector<BlockId> kept_blocks;  // only on the last token of a `keep_blocks` sequence
};

// Role. Continuous batching as a state machine: the sequences in a step, its duration, its output.
//   A sequence is admitted in arrival order once a place in the batch and all the blocks it can ever need are
//   there, so running ones are never preempted. A step has a budget of tokens: one for each
//   sequence that decodes, the rest for prompts in the order of admission; a long prompt takes
//   several steps. The part of a prompt that a step computes serves as a prefix for sequences
//   admitted after it, in the same step, too.
// Confinement. One thread, no clock: the caller waits the step's duration between the two calls.
// Lifetime. Refers to the pool, which outlives it.
// Invariants. Blocks of a sequence are given back exactly once: on finish, abort, or to the caller.
class Scheduler {
 public:
  Scheduler(const Options& options, BlockPool& pool, SequenceId first_id = 1);

  SequenceId submit(SequenceSpec spec);
  // Whether a sequence this large can ever run here.
  bool fits(std::size_t prompt_tokens, std::uint32_t output_tokens) const;
  void abort(SequenceId id);
  // The sequence keeps its place and its blocks and produces nothing more.
  void hold(SequenceId id);

  // Admits what can run and says how long the step lasts; nothing when there is nothing to run.
  std::optional<std::chrono::nanoseconds> begin_step();
  std::vector<TokenProduced> finish_step();

  // How many prompt tokens the current step computes.
  std::uint64_t prefill_tokens() const { return load_.prompt_tokens; }
  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Running {
    SequenceSpec spec;
    BlockPool::Allocation allocation;
    std::uint32_t produced = 0;
    std::uint32_t computed_output = 0;  // output tokens whose KV is in the blocks
    bool held = false;
  };

  static bool decodes(const Running& sequence) {
    return sequence.allocation.tokens >= sequence.spec.prompt.size();
  }
  void go_on(std::uint64_t& budget);
  void admit(std::uint64_t& budget);
  void prefill(Running& sequence, std::uint64_t& budget);
  void cache_output(Running& sequence);
  void cache_at_end(Running& sequence);
  double jitter();

  const Options& options_;
  StepModel model_;
  BlockPool& pool_;
  SequenceId next_id_;
  std::uint64_t steps_ = 0;
  StepLoad load_;  // of the current step
  std::deque<std::pair<SequenceId, SequenceSpec>> waiting_;
  std::unordered_map<SequenceId, Running> running_;
  std::vector<SequenceId> order_;  // of admission; holds ids of aborted ones until the next step
  std::vector<SequenceId> in_step_;
};

}  // namespace baton::sim
