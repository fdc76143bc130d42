// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/api.h"
#include "wire/json_object.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::engine {

// Several times the longest `usage` of any engine. Details of a longer one are not read, which
// bounds the cost of repeated passes over them.
inline constexpr std::size_t kLongestUsage = 2048;

// Token counts as an engine reports them.
struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::optional<std::int64_t> cached_tokens;
  // `prompt_tokens_details` as it was written, of an answer that was read whole; empty: none.
  std::string prompt_details = {};
};

// `finish_reason` of the first choice of a completion; an error where there is none.
Result<std::string> finish_reason_of(const wire::JsonObject& completion);

// The model has ended its answer: at a stop token or string, with a tool call, by a filter.
bool means_end(std::string_view finish_reason);

// The engine gave up on the answer, though it says so as if it had finished.
bool means_failure(std::string_view finish_reason);

// The usage member of a completion or chunk, where there is one.
std::optional<Usage> usage_of(const wire::JsonObject& completion);

// The same of the usage member itself.
Usage read_usage(const wire::JsonObject& usage);

// A streamed event with this JSON as its data. Line ends, which JSON has only between its tokens,
// become blanks.
std::string as_event(std::string json);

// A whole completion turned into the events a streaming client expects, [DONE] included.
enum class IncludeUsage { No, Yes };
Result<std::string> as_event_stream(Api api, const std::string& completion,
                                    IncludeUsage include_usage);

}  // namespace baton::engine
