// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/options.h"
#include "tools/sim/token_source.h"

#include <optional>
#include <string>
#include <string_view>

namespace baton::sim {

// The engines' endpoints for tokens: /tokenize, /detokenize and vLLM's render, as POST. nullopt
// where this engine, in this release, has no such path.
std::optional<Result<std::string>> token_answer(const Options& options, const TokenSource& tokens,
                                                std::string_view path, const std::string& body);

}  // namespace baton::sim
