// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/api.h"
#include "engine/completion_json.h"
#include "wire/json_object.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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

// A branch's chunk as a part of the client's stream.
struct MergedChunk {
  std::string json;  // empty: it was there for its usage only
  std::optional<Usage> usage;
};
Result<MergedChunk> renumber(std::string_view chunk, std::uint32_t index, std::string_view id);

// One completion with the choices of all, which are in the order of branches_of. Its other members
// are those of the first.
Result<std::string> merge_whole(const std::vector<std::string>& completions,
                                std::size_t choices_per_prompt);

// What all branches used together: a prompt counts once, by its first branch, and so does what was
// cached of it. nullopt where no branch reported anything.
std::optional<Usage> merge_usage(std::span<const std::optional<Usage>> branches,
                                 std::size_t choices_per_prompt);

// The event that tells a streaming client of it. `chunk` is any chunk of the merged stream.
Result<std::string> usage_event(std::string_view chunk, const Usage& usage);

}  // namespace baton::engine
