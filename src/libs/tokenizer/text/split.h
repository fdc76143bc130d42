// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/matcher.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Treatment of the matches that cut a text.
enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

// The name as tokenizer.json has it.
std::optional<SplitBehavior> split_behavior(std::string_view name);

// Appends the pieces that `matches` cut the text into, none of them empty. With `invert`, what lies
// between the matches counts as matched.
void split_at(std::string_view text, std::span<const Match> matches, SplitBehavior behavior,
              bool invert, std::vector<std::string_view>& pieces);

}  // namespace baton::tokenizer
