// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::loadgen {

enum class Api { Completions, Chat };
// Tokens: a list of token ids, so that lengths are exact. Text: words, about one token each.
enum class PromptKind { Tokens, Text };
enum class WorkloadKind { Distinct, SharedPrefix, MultiTurn, HotDocument, LongShort, Trace };
enum class Arrivals { Poisson, Even };

std::string_view to_string(Api api);
std::string_view to_string(PromptKind kind);
std::string_view to_string(WorkloadKind kind);
std::string_view to_string(Arrivals arrivals);
std::optional<WorkloadKind> parse_workload(std::string_view text);

// Content of the prompts. Lengths are in tokens.
struct WorkloadOptions {
  WorkloadKind kind = WorkloadKind::Distinct;
  std::uint64_t seed = 1;
  std::uint32_t input_tokens = 512;  // of what differs from request to request
  std::uint32_t output_tokens = 128;
  double spread = 0;                   // both vary by up to this share, up and down
  std::uint32_t prefix_tokens = 2048;  // SharedPrefix, MultiTurn: the system prompt
  std::uint32_t groups = 1;            // SharedPrefix: how many system prompts there are
  std::uint32_t turns = 5;
  std::chrono::milliseconds think_time{1000};
  std::uint32_t document_tokens = 8192;
  double hot_share = 0.5;
  std::uint32_t other_tokens = 1024;  // HotDocument: the prompts about something else
  std::uint32_t long_tokens = 8192;
  std::uint32_t short_tokens = 256;
  double long_share = 0.1;
  std::string trace_file;           // empty: a trace is made up
  std::uint32_t trace_block = 512;  // tokens that one of its ids stands for
  double time_scale = 1;            // above 1: faster than it was
};

struct Options {
  std::string url;
  std::string model;  // empty: the endpoint's first
  std::string api_key_file;
  std::string ca_file;               // empty: the system's
  std::vector<std::string> headers;  // "Name: value", sent with each request
  Api api = Api::Completions;
  std::optional<PromptKind> prompt;
  std::uint32_t vocabulary = 32000;  // token ids stay below
  bool natural_end = false;          // answers may be shorter than asked for
  bool session_ids = false;          // each conversation says who it is
  WorkloadOptions workload;

  std::optional<std::uint32_t> concurrency;
  std::optional<double> rate;
  Arrivals arrivals = Arrivals::Poisson;
  std::optional<std::uint64_t> requests;
  std::optional<std::chrono::milliseconds> duration;
  std::string warmup;  // "10s", or a number of requests
  std::chrono::milliseconds timeout{600'000};
  std::chrono::milliseconds drain{30'000};
  std::uint32_t max_in_flight = 10'000;
  std::uint32_t threads = 1;

  std::optional<double> slo_ttft_ms;
  std::optional<double> slo_itl_ms;
  std::string label;
  std::string admin;
  std::string admin_key_file;
  std::string output;
  std::string report;
  std::uint32_t samples = 2000;
  bool quiet = false;
};

inline constexpr std::uint64_t kDefaultRequests = 1000;
inline constexpr std::uint32_t kDefaultConcurrency = 16;

// Options that make sense together, with every default decided.
struct Plan {
  Options options;
  PromptKind prompt = PromptKind::Tokens;
  bool open_loop = false;
  std::optional<std::uint64_t> requests;  // one of these two is there, or the trace's end
  std::optional<std::chrono::milliseconds> duration;
  std::uint64_t warmup_requests = 0;
  std::chrono::milliseconds warmup_time{0};
};

// Says what to do where they do not.
Result<Plan> make_plan(Options options);

}  // namespace baton::loadgen
