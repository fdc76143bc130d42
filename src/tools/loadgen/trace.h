// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::loadgen {

// One request of a trace in Mooncake's format: a JSON object a line with timestamp (ms),
// input_length, output_length (tokens) and hash_ids, one for each block of the prompt.
struct TraceRequest {
  double at_ms = 0;
  std::uint32_t input_length = 0;
  std::uint32_t output_length = 0;
  std::vector<std::uint64_t> hash_ids;
};

inline constexpr std::uint32_t kTraceBlock = 512;  // tokens, where nothing else is said
inline constexpr std::size_t kLongestTrace = 2'000'000;

// Requests in order of time, the first at 0. Says which line is wrong.
Result<std::vector<TraceRequest>> parse_trace(std::string_view text,
                                              std::uint32_t block = kTraceBlock);
Result<std::vector<TraceRequest>> read_trace(const std::string& path, std::uint32_t block);

// A made-up trace in the shape of chat traffic: conversations that come back with all that was said
// before, one system block for all, mostly middling and a few very long prompts; 3.4 requests a
// second.
std::vector<TraceRequest> make_trace(std::uint64_t requests, std::uint64_t seed);

}  // namespace baton::loadgen
