// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/step_model.h"

#include <algorithm>

namespace baton::sim {

void StepLoad::add_piece(std::uint64_t tokens, std::uint64_t before) {
  const auto length = static_cast<double>(tokens);
  prompt_tokens += tokens;
  attended_pairs += length * (static_cast<double>(before) + length / 2);
}

void StepLoad::add_decode(std::uint64_t context) {
  ++decoding;
  context_tokens += context;
}

double StepModel::ms(const StepLoad& load) const {
  const std::uint64_t tokens = load.prompt_tokens + (floor_ms > 0 ? load.decoding : 0);
  double compute = 0;
  if (tokens > 0) {
    if (tokens_per_second > 0) compute = 1000.0 * static_cast<double>(tokens) / tokens_per_second;
    compute = std::max(compute, floor_ms);
  }
  return step_ms + sequence_ms * static_cast<double>(load.sequences) + compute +
         1e-6 * (attention_ns * load.attended_pairs +
                 context_ns * static_cast<double>(load.context_tokens));
}

}  // namespace baton::sim
