// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace baton::engine {

// Sums the branches of a fanned-out request into one `usage` object. Engines add fields with every
// release, so all members are added alike, whatever their names and nesting: integers are summed,
// everything else is the first branch's. Members about the prompt (`prompt_…`) count once per
// prompt, from the first of its branches that reports any.
//
// A branch is the raw JSON of its `usage`, empty where it reported none; they are in the order of
// branches_of. Empty where no branch reported anything.
std::string total_usage(std::span<const std::string> branches, std::size_t choices_per_prompt);

}  // namespace baton::engine
