// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/api.h"
#include "wire/json_object.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::engine {

// A request for several choices or prompts, served as several requests for one choice each. The
// client sees one answer: branch i is its choice i.

inline constexpr std::int64_t kMostChoices = 128;  // n
inline constexpr std::size_t kMostBranches = 256;  // n times prompts

// One of the requests; ClientCall takes its two members.
struct Branch {
  std::uint32_t choice = 0;      // among the n of its prompt
  std::string_view prompt = {};  // raw JSON, a part of the client's body; empty: the body's own
};

// The branches in the order of the client's choices: prompt by prompt, n each. Empty where the
// request is for one choice, or its choices cannot be had one by one (beam search, best_of).
// InvalidRequest where n or the list of prompts makes no sense, or asks for too much.
Result<std::vector<Branch>> branches_of(Api api, const wire::JsonObject& body);

// Several choices at temperature 0. vLLM refuses them, and must see them together to do so.
bool wants_greedy_choices(const wire::JsonObject& body);

// A branch's chunk as a part of the client's stream.
struct MergedChunk {
  std::string json;   // empty: it was there for its usage only
  std::string usage;  // raw JSON; empty: it has none
};
Result<MergedChunk> renumber(std::string_view chunk, std::uint32_t index, std::string_view id);

// One completion with the choices of all completions, which are in the order of branches_of. Usage
// is the total (see total_usage); the other members are those of the first.
Result<std::string> merge_whole(const std::vector<std::string>& completions,
                                std::size_t choices_per_prompt);

// The event that tells a streaming client of `usage`, raw JSON. `chunk` is any chunk of the merged
// stream.
Result<std::string> usage_event(std::string_view chunk, std::string_view usage);

}  // namespace baton::engine
