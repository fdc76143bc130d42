// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>

namespace baton::sim {

// Work of one step.
struct StepLoad {
  std::uint64_t sequences = 0;      // in the step, whatever is done for them
  std::uint64_t prompt_tokens = 0;  // that it computes
  double attended_pairs = 0;        // (token of a prompt, token it attends to), half of them masked
  std::uint64_t decoding = 0;       // sequences that decode: one token of each is computed
  std::uint64_t context_tokens = 0;  // whose KV is read for them

  // A piece of a prompt, of which `before` tokens have their KV already. The pieces of a prompt
  // have as many pairs as the whole prompt of n tokens: n * n / 2.
  void add_piece(std::uint64_t tokens, std::uint64_t before);
  // A sequence that decodes, with the tokens that it has so far.
  void add_decode(std::uint64_t context);
};

// Role. How long an engine's step lasts, from what is in it: the tokens' compute, which cannot be
//   shorter than reading the weights once; attention within prompts; reading the KV of sequences
//   that decode; and what a server adds. Constants in the units of the flags of `baton sim`.
// Confinement. None: a value, pure.
// Lifetime. Its own.
// Invariants. A step that has more to do never lasts shorter. Without a floor sequences that decode
//   compute nothing: their step costs `step_ms` and `sequence_ms` alone.
struct StepModel {
  double step_ms = 0;            // each step: what a server does beside computing
  double sequence_ms = 0;        // for each sequence in it
  double floor_ms = 0;           // what any tokens take to compute at least: the weights are read
  double tokens_per_second = 0;  // computed beyond the floor; 0: no time
  double attention_ns = 0;       // for each attended pair
  double context_ns = 0;         // for each token of context

  double ms(const StepLoad& load) const;
};

}  // namespace baton::sim
