// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/options.h"

#include <cstdint>
#include <span>
#include <string>

namespace baton::sim {

// The `logprobs` of SGLang's completions: what `prompt` and then `answer` were, `top` of each. The
// first token of a prompt has none.
std::string sglang_logprobs(std::span<const TokenId> prompt, std::span<const TokenId> answer,
                            std::uint32_t top);

}  // namespace baton::sim
