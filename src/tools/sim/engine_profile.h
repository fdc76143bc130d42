// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/options.h"
#include "tools/sim/step_model.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace baton::sim {

// A model on a machine, under vLLM: what `--profile` stands for.
struct EngineProfile {
  std::string_view name;
  StepModel step;
  // On one GPU; 0: not known, and a hand-off lasts what its flags say.
  std::uint32_t kv_bytes_per_token = 0;
  // vLLM's defaults for a server there.
  std::uint32_t max_seqs = 0;
  std::uint32_t max_batched_tokens = 0;

  // Flags that come after it override what it sets.
  void apply(Options& options) const;
};

std::span<const EngineProfile> engine_profiles();
// None where no profile has this name.
const EngineProfile* find_profile(std::string_view name);

// The step model of the options, from a profile or from single flags.
StepModel step_model(const Options& options);

}  // namespace baton::sim
