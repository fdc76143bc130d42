// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// SGLang's checks of a request whose types are right.
#include "tools/sim/answer.h"
#include "tools/sim/dialect_fields.h"
#include "tools/sim/sglang_body.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace baton::sim {
namespace {

using nlohmann::json;

bool is_named_tool(const json& tool, const json& name) {
  return tool.is_object() && tool.value("/function/name"_json_pointer, json()) == name;
}

Result<void> check_media(const json& messages) {
  static constexpr std::array<std::string_view, 4> kMedia{"image_url", "video_url", "audio_url",
                                                          "input_audio"};
  for (const json& message : messages) {
    const json* content = field(message, "content");
    if (content == nullptr || !content->is_array()) continue;
    for (const json& part : *content) {
      const json* type = string_field(part, "type");
      if (type == nullptr) continue;
      const auto& name = type->get_ref<const std::string&>();
      if (std::ranges::find(kMedia, name) == kMedia.end()) continue;
      return fail(Errc::InvalidRequest,
                  fmt::format("Model only supports text input; received unsupported content type "
                              "'{}'.",
                              name));
    }
  }
  return {};
}

Result<void> check_tool_choice(const json& body) {
  const json* choice = field(body, "tool_choice");
  if (choice == nullptr) return {};
  const json* tools = field(body, "tools");
  const bool none = tools == nullptr || tools->empty();
  if (*choice == "required" && none) {
    return fail(Errc::InvalidRequest, "Tools cannot be empty if tool choice is set to required.");
  }
  if (!choice->is_object()) return {};
  if (none) {
    return fail(Errc::InvalidRequest,
                "Tools cannot be empty if tool choice is set to a specific tool.");
  }
  const json name = choice->value("/function/name"_json_pointer, json());
  if (std::ranges::any_of(*tools, [&](const json& tool) { return is_named_tool(tool, name); }))
    return {};
  return fail(Errc::InvalidRequest, fmt::format("Tool '{}' not found in tools list.",
                                                name.is_string() ? name.get<std::string>() : ""));
}

// Null and 0 are the same to it.
std::int64_t asked_tokens(const json& body) {
  for (const char* name : {"max_completion_tokens", "max_tokens"}) {
    const json* value = field(body, name);
    if (value != nullptr && value->is_number_integer() && *value != 0)
      return value->get<std::int64_t>();
  }
  return 0;
}

Result<void> check_chat(const Options& options, const json& body) {
  const json& messages = body.at("messages");
  if (messages.empty()) return fail(Errc::InvalidRequest, "Messages cannot be empty.");
  const json* kwargs = field(body, "chat_template_kwargs");
  if (kwargs != nullptr && kwargs->contains("chat_template")) {
    return fail(Errc::InvalidRequest,
                "Request-supplied chat_template is not allowed. Start the server with "
                "--trust-request-chat-template to permit it.");
  }
  if (!options.multimodal) {
    if (auto media = check_media(messages); !media) return media;
  }
  if (auto tools = check_tool_choice(body); !tools) return tools;
  if (const std::int64_t asked = asked_tokens(body); asked > options.max_model_len) {
    return fail(Errc::InvalidRequest,
                fmt::format("max_completion_tokens is too large: {}.This model supports at most {} "
                            "completion tokens.",
                            asked, options.max_model_len));
  }
  const json* format = field(body, "response_format");
  if (format != nullptr && format->value("type", json()) == "json_schema" &&
      format->value("/json_schema/schema"_json_pointer, json()).is_null()) {
    return fail(Errc::InvalidRequest,
                "schema_ is required for json_schema response format request.");
  }
  if (!is_true(body, "stream")) return {};
  if (is_true(body, "return_prompt_token_ids")) {
    return fail(sglang_refusal(
        "return_prompt_token_ids is not supported with streaming. Please set stream=false when "
        "using return_prompt_token_ids=true.",
        "BadRequest"));
  }
  if (is_true(body, "return_token_ids")) {
    return fail(sglang_refusal(
        "return_token_ids is not supported with streaming on /v1/chat/completions. Please set "
        "stream=false when using return_token_ids=true.",
        "BadRequest"));
  }
  return {};
}

Result<void> check_completion(const json& body) {
  const json& prompt = body.at("prompt");
  const auto is_empty = [](const json& one) {
    return one.is_string() ? one.get_ref<const std::string&>().empty()
                           : one.is_array() && one.empty();
  };
  if (is_empty(prompt) || (prompt.is_array() && std::ranges::all_of(prompt, is_empty)))
    return fail(Errc::InvalidRequest, "Prompt cannot be empty");
  return {};
}

Result<void> check_ranges(const json& body) {
  struct Range {
    const char* name;
    double least;
    double most;
    bool least_included;
    const char* rule;
  };
  constexpr double kAny = 1e300;
  static constexpr Range kRanges[] = {
      {"temperature", 0, kAny, true, "temperature must be a non-negative finite number"},
      {"top_p", 0, 1, false, "top_p must be in (0, 1]"},
      {"min_p", 0, 1, true, "min_p must be in [0, 1]"},
      {"frequency_penalty", -2, 2, true, "frequency_penalty must be in [-2, 2]"},
      {"presence_penalty", -2, 2, true, "presence_penalty must be in [-2, 2]"},
      {"repetition_penalty", 0, 2, false,
       "repetition_penalty must be in (0, 2] (1.0 = no penalty)"},
  };
  for (const Range& range : kRanges) {
    const auto found = body.find(range.name);
    if (found == body.end() || !found->is_number()) continue;
    const auto value = found->get<double>();
    const bool enough = range.least_included ? value >= range.least : value > range.least;
    if (enough && value <= range.most) continue;
    return fail(Errc::InvalidRequest, fmt::format("{}, got {}{}.", range.rule, value,
                                                  value == std::floor(value) ? ".0" : ""));
  }
  return {};
}

// The likeliest token alone, which a temperature of 0 asks for, is a way of its own to say so.
Result<void> check_top_k(const json& body) {
  const json* top_k = field(body, "top_k");
  const json* temperature = field(body, "temperature");
  const bool greedy =
      temperature != nullptr && temperature->is_number() && temperature->get<double>() < 1e-6;
  if (top_k == nullptr || greedy || *top_k == -1 || *top_k >= 1) return {};
  return fail(Errc::InvalidRequest,
              fmt::format("top_k must be -1 (disable) or at least 1, got {}.", top_k->dump()));
}

Result<void> check_limits(const json& body) {
  const json* least = field(body, "min_tokens");
  const std::int64_t min_tokens = least == nullptr ? 0 : least->get<std::int64_t>();
  if (min_tokens < 0) {
    return fail(Errc::InvalidRequest,
                fmt::format("min_new_tokens must be in [0, max_new_tokens], got {}.", min_tokens));
  }
  const bool limited =
      field(body, "max_completion_tokens") != nullptr || field(body, "max_tokens") != nullptr;
  const std::int64_t most = asked_tokens(body);
  if (most < 0) {
    return fail(Errc::InvalidRequest,
                fmt::format("max_new_tokens must be at least 0, got {}.", most));
  }
  if (!limited || min_tokens <= most) return {};
  return fail(
      Errc::InvalidRequest,
      fmt::format("min_new_tokens must be in [0, max_new_tokens({})], got {}.", most, min_tokens));
}

Result<void> check_bias(const json& body) {
  const json* bias = field(body, "logit_bias");
  if (bias == nullptr) return {};
  for (const auto& [token, weight] : bias->items()) {
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), id);
    if (error != std::errc() || end != token.data() + token.size()) {
      return fail(Errc::InvalidRequest,
                  fmt::format("invalid literal for int() with base 10: '{}'", token));
    }
    if (id >= 0 && id < std::int64_t{kVocabularySize}) continue;
    return fail(Errc::InvalidRequest, fmt::format("logit_bias must has keys in [0, {}], got {}.",
                                                  kVocabularySize - 1, token));
  }
  return {};
}

Result<void> check_grammars(const json& body) {
  const json* format = field(body, "response_format");
  const json type =
      format != nullptr && format->is_object() ? format->value("type", json()) : json();
  const bool formatted = type == "json_schema" || type == "json_object" || type == "structural_tag";
  std::size_t grammars = formatted ? 1 : 0;
  for (const char* name : {"json_schema", "regex", "ebnf"}) {
    if (string_field(body, name) != nullptr) ++grammars;
  }
  if (grammars < 2) return {};
  return fail(Errc::InvalidRequest,
              "Only one of json_schema, regex, ebnf, or structural_tag can be set.");
}

}  // namespace

Result<void> check_sglang_rules(const Options& options, Api api, const json& body) {
  if (auto own = api == Api::Chat ? check_chat(options, body) : check_completion(body); !own)
    return own;
  // Python's range() is asked for every n-th.
  if (const json* n = field(body, "n"); n != nullptr && *n == 0)
    return fail(sglang_refusal("range() arg 3 must not be zero", "BadRequest"));
  return {};
}

Result<void> check_sglang_sampling(const json& body) {
  if (auto checked = check_ranges(body); !checked) return checked;
  if (auto checked = check_top_k(body); !checked) return checked;
  if (auto checked = check_limits(body); !checked) return checked;
  if (auto checked = check_bias(body); !checked) return checked;
  return check_grammars(body);
}

std::optional<std::string> generate_refusal(const std::string& body) {
  const json request = json::parse(body, nullptr, false);
  if (!request.is_object()) return std::nullopt;
  const auto told = [](std::string_view message) {
    return json{{"error", {{"message", message}}}}.dump();
  };
  if (field(request, "text") == nullptr && field(request, "input_ids") == nullptr &&
      field(request, "input_embeds") == nullptr)
    return told("Either text, input_ids or input_embeds should be provided.");
  const json* sampling = field(request, "sampling_params");
  if (sampling == nullptr || !sampling->is_object()) return std::nullopt;
  const json* bias = field(*sampling, "logit_bias");
  if (bias == nullptr || !bias->is_object()) return std::nullopt;
  const auto checked = check_bias(*sampling);
  return checked ? std::nullopt : std::optional(told(checked.error().message()));
}

}  // namespace baton::sim
