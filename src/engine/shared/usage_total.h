// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace baton::engine {

// What the branches of a fanned-out request used together, as a `usage` object. Engines add fields with
// every release, so all members are added up alike, whatever their names and however deep: integers
// become their sum, everything else is the first branch's. Members that tell of the prompt
// (`prompt_…`) count once for each prompt, by the first of its branches that reports any.
//
// A branch is the raw JSON of its `usage`, empty where it reported none; they are in the order of
// branches_of. Empty where no branch reported anything.
std::string total_usage(std::span<const std::string> branches, std::size_t choices_per_prompt);

}  // namespace baton::engine
