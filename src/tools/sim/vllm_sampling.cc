// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Sampling parameters that vLLM refuses. Their types are right by now.
#include "tools/sim/answer.h"
#include "tools/sim/dialect_fields.h"
#include "tools/sim/vllm_body.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace baton::sim {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostLogprobs = 20;
constexpr std::int64_t kMostSequences = 16384;

double number_of(const json& body, const char* name, double otherwise) {
  const json* value = field(body, name);
  return value == nullptr ? otherwise : value->get<double>();
}

std::int64_t integer_of(const json& body, const char* name, std::int64_t otherwise) {
  const json* value = field(body, name);
  return value == nullptr ? otherwise : value->get<std::int64_t>();
}

// A float as Python writes it.
std::string python_float(double value) {
  return std::trunc(value) == value && std::abs(value) < 1e15 ? fmt::format("{:.1f}", value)
                                                              : fmt::format("{}", value);
}

// A sentence that the engine completes with the value.
std::unexpected<Error> out_of_range(std::string_view rule, const std::string& value) {
  return fail(refused_request(fmt::format("{}, got {}.", rule, value)));
}

std::unexpected<Error> out_of_range(std::string_view rule, const std::string& value,
                                    std::string_view parameter) {
  return fail(refused_parameter(fmt::format("{}, got {}.", rule, value), parameter, value));
}

Result<void> check_numbers(const json& body) {
  for (const char* name : {"presence_penalty", "frequency_penalty"}) {
    const double penalty = number_of(body, name, 0);
    if (!(penalty >= -2 && penalty <= 2))
      return out_of_range(fmt::format("{} must be in [-2, 2]", name), python_float(penalty));
  }
  const double repetition = number_of(body, "repetition_penalty", 1);
  if (!(repetition > 0))
    return out_of_range("repetition_penalty must be greater than zero", python_float(repetition));
  const double temperature = number_of(body, "temperature", 1);
  if (!(temperature >= 0))
    return out_of_range("temperature must be non-negative", python_float(temperature),
                        "temperature");
  if (temperature > 2)
    return out_of_range("temperature must be in [0, 2]", python_float(temperature), "temperature");
  const double top_p = number_of(body, "top_p", 1);
  if (!(top_p > 0 && top_p <= 1))
    return out_of_range("top_p must be in (0, 1]", python_float(top_p), "top_p");
  const std::int64_t top_k = integer_of(body, "top_k", 0);
  if (top_k < -1)
    return out_of_range("top_k must be 0 (disable), or at least 1", fmt::format("{}", top_k));
  const double min_p = number_of(body, "min_p", 0);
  if (!(min_p >= 0 && min_p <= 1))
    return out_of_range("min_p must be in [0, 1]", python_float(min_p));
  return {};
}

Result<void> check_choices(const json& body) {
  const std::int64_t n = integer_of(body, "n", 1);
  if (n < 1) return out_of_range("n must be at least 1", fmt::format("{}", n));
  if (n > kMostSequences) {
    return fail(
        refused_request(fmt::format("n must be at most {}, got {}. To increase this limit, set the "
                                    "VLLM_MAX_N_SEQUENCES environment variable.",
                                    kMostSequences, n)));
  }
  return {};
}

// The field that decides how long an answer may become.
const char* limit_field(Api api, const json& body) {
  return api == Api::Chat && field(body, "max_completion_tokens") != nullptr
             ? "max_completion_tokens"
             : "max_tokens";
}

// Checks the limit against the context's size, not against the room that this prompt leaves.
Result<void> check_room(const Options& options, Api api, const json& body) {
  const char* name = limit_field(api, body);
  const std::int64_t most = integer_of(body, name, 1);
  if (most <= options.max_model_len) return {};
  return fail(refused_parameter(
      fmt::format("{}={} cannot be greater than max_model_len={}. Please request fewer output "
                  "tokens.",
                  name, most, options.max_model_len),
      name, fmt::format("{}", most)));
}

Result<void> check_lengths(Api api, const json& body) {
  const std::int64_t most = integer_of(body, limit_field(api, body), 16);
  const bool prompt_alone = api == Api::Completions && most == 0 && is_true(body, "echo");
  if (most < 1 && !prompt_alone)
    return out_of_range("max_tokens must be at least 1", fmt::format("{}", most), "max_tokens");
  const std::int64_t least = integer_of(body, "min_tokens", 0);
  if (least < 0)
    return out_of_range("min_tokens must be greater than or equal to 0", fmt::format("{}", least));
  if (field(body, limit_field(api, body)) != nullptr && least > most && !prompt_alone) {
    return out_of_range(fmt::format("min_tokens must be less than or equal to max_tokens={}", most),
                        fmt::format("{}", least));
  }
  if (const std::int64_t interval = integer_of(body, "stream_interval", 1); interval < 1)
    return out_of_range("stream_interval must be at least 1", fmt::format("{}", interval),
                        "stream_interval");
  return {};
}

Result<void> check_most_logprobs(const json& body, const char* name, const char* parameter,
                                 std::string_view kind) {
  std::int64_t count = integer_of(body, name, 0);
  if (count == -1) count = kVocabularySize;
  if (count <= kMostLogprobs) return {};
  return fail(refused_parameter(
      fmt::format("Requested {} logprobs of {}, which is greater than max allowed: {}", kind, count,
                  kMostLogprobs),
      parameter, fmt::format("{}", count)));
}

Result<void> check_stops(const json& body) {
  const json* stop = field(body, "stop");
  if (stop == nullptr) return {};
  const bool has_empty =
      stop->is_string() ? *stop == "" : std::ranges::find(*stop, "") != stop->end();
  if (!has_empty) return {};
  return fail(refused_request("stop cannot contain an empty string."));
}

// With a tokenizer of its own the vocabulary is another.
Result<void> check_bias(const Options& options, const json& body) {
  const json* bias = field(body, "logit_bias");
  if (bias == nullptr || !options.tokenizer.empty()) return {};
  for (const auto& [key, value] : bias->items()) {
    std::uint64_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size()) {
      return fail(refused_parameter(
          fmt::format("logit_bias contains key(s) that cannot be converted to integer token IDs: "
                      "['{}']",
                      key),
          "logit_bias", fmt::format("['{}']", key)));
    }
    if (id < kVocabularySize) continue;
    return fail(refused_parameter(
        fmt::format("token_id(s) [{}] in logit_bias contain out-of-vocab token ids. Vocabulary "
                    "size: {}",
                    id, kVocabularySize),
        "logit_bias", fmt::format("[{}]", id)));
  }
  return {};
}

}  // namespace

Result<void> check_vllm_sampling(const Options& options, Api api, const json& body) {
  if (api == Api::Completions && field(body, "suffix") != nullptr) {
    Error error =
        refused_request("suffix is only supported for models with FIM completion rendering");
    return fail(std::move(error.with_param("suffix")));
  }
  if (auto checked = check_room(options, api, body); !checked) return checked;
  if (auto checked = check_choices(body); !checked) return checked;
  if (auto checked = check_numbers(body); !checked) return checked;
  if (auto checked = check_lengths(api, body); !checked) return checked;
  if (auto checked = check_stops(body); !checked) return checked;
  if (const std::int64_t n = integer_of(body, "n", 1);
      n > 1 && number_of(body, "temperature", 1) == 0)
    return out_of_range("n must be 1 when using greedy sampling", fmt::format("{}", n));
  if (auto checked = check_bias(options, body); !checked) return checked;
  const char* top = api == Api::Chat ? "top_logprobs" : "logprobs";
  if (auto checked = check_most_logprobs(body, top, "logprobs", "sample"); !checked) return checked;
  return check_most_logprobs(body, "prompt_logprobs", "prompt_logprobs", "prompt");
}

}  // namespace baton::sim
