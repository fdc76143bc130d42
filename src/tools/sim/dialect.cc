// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/dialect.h"

#include "tools/sim/dialect_fields.h"
#include "tools/sim/sglang_body.h"
#include "tools/sim/validation.h"
#include "tools/sim/vllm_body.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

namespace baton::sim {
namespace {

using nlohmann::json;

constexpr std::uint32_t kDefaultCompletionTokens = 16;

Result<bool> read_bool(const json& body, const char* key) {
  const json* value = field(body, key);
  if (value == nullptr) return false;
  if (!value->is_boolean())
    return fail(Errc::InvalidRequest, fmt::format("{}: must be a boolean", key));
  return value->get<bool>();
}

Result<std::optional<std::uint32_t>> read_count(const json& body, const char* key,
                                                std::uint32_t least) {
  const json* value = field(body, key);
  if (value == nullptr) return std::optional<std::uint32_t>();
  if (!value->is_number_integer() || *value < least ||
      *value > std::numeric_limits<std::int32_t>::max()) {
    return fail(Errc::InvalidRequest,
                fmt::format("{}: must be an integer of at least {}", key, least));
  }
  return std::optional(value->get<std::uint32_t>());
}

// vLLM is asked for an adapter by its name, SGLang by model:adapter.
bool read_adapter(const Options& options, GenerationRequest& out) {
  const bool prefixed = options.engine == model::Engine::Sglang;
  const auto found = std::ranges::find_if(options.loras, [&](const std::string& lora) {
    return out.model == (prefixed ? fmt::format("{}:{}", options.model, lora) : lora);
  });
  if (found == options.loras.end()) return false;
  out.scope.lora = *found;
  out.scope.lora_id = static_cast<std::uint32_t>(found - options.loras.begin()) + 1;
  return true;
}

// SGLang serves its one model under any name; only what stands behind a colon must be there.
Result<void> check_sglang_adapter(const Options& options, std::string_view model) {
  const std::size_t colon = model.find(':');
  if (colon == model.npos || colon + 1 == model.size()) return {};
  const std::string_view name = model.substr(colon + 1);
  if (!options.loras.empty()) {
    return fail(Errc::InvalidRequest,
                fmt::format("Got LoRA adapter that has never been loaded: {}", name));
  }
  return fail(Errc::InvalidRequest,
              fmt::format("LoRA adapter '{}' was requested, but LoRA is not enabled. Please launch "
                          "the server with --enable-lora flag and preload adapters using "
                          "--lora-paths or /load_lora_adapter endpoint.",
                          name));
}

void read_salt(const Options& options, const json& body, GenerationRequest& out) {
  const json* salt = field(body, "cache_salt");
  // SGLang's own way to separate a part of the cache; it is not reported.
  const json* key = field(body, "extra_key");
  if (options.engine == model::Engine::Sglang && key != nullptr) out.scope.key = key->dump();
  if (salt != nullptr && salt->is_string()) out.scope.salt = salt->get<std::string>();
}

Result<void> read_stream(const Options& options, const json& body, GenerationRequest& out) {
  const Result<bool> stream = read_bool(body, "stream");
  if (!stream) return fail(stream.error());
  out.stream = *stream;
  const json* stream_options = field(body, "stream_options");
  if (stream_options == nullptr) return {};
  if (!stream_options->is_object()) {
    return fail(Errc::InvalidRequest, "stream_options: must be an object");
  }
  if (!out.stream) {
    if (options.engine != model::Engine::Trtllm) return {};
    return fail(Errc::InvalidRequest, "Stream options can only be defined when `stream=True`.");
  }
  const bool trtllm = options.engine == model::Engine::Trtllm;
  out.include_usage = stream_options->value("include_usage", trtllm);
  out.continuous_usage = stream_options->value("continuous_usage_stats", false);
  return {};
}

Result<void> read_stop(const json& body, AnswerLimits& limits) {
  const json* stop = field(body, "stop");
  if (stop == nullptr) return {};
  const json list = stop->is_array() ? *stop : json::array({*stop});
  for (const json& one : list) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty()) {
      return fail(Errc::InvalidRequest, "stop: must be a non-empty string or a list of them");
    }
    limits.stop.push_back(one.get<std::string>());
  }
  return {};
}

Result<void> read_limits(const Options& options, const json& body, GenerationRequest& out) {
  const auto n = read_count(body, "n", 1);
  if (!n) return fail(n.error());
  out.n = n->value_or(1);
  const bool vllm = options.engine == model::Engine::Vllm;
  if (out.n > 128 && !vllm) return fail(Errc::InvalidRequest, "n: must be at most 128");
  // vLLM and SGLang have looked at them; vLLM lets none be asked for with the prompt alone.
  const std::uint32_t least = options.engine == model::Engine::Trtllm ? 1 : 0;
  const auto newer = read_count(body, "max_completion_tokens", vllm ? 1 : least);
  if (!newer) return fail(newer.error());
  const auto older = read_count(body, "max_tokens", least);
  if (!older) return fail(older.error());
  out.max_tokens = out.api == Api::Chat && newer->value_or(0) > 0 ? *newer : *older;
  if (out.max_tokens == 0U && vllm) {
    out.prompt_alone = true;
    out.max_tokens = 1;
  }
  if (out.api == Api::Completions && !out.max_tokens) out.max_tokens = kDefaultCompletionTokens;
  const auto min_tokens = read_count(body, "min_tokens", 0);
  if (!min_tokens) return fail(min_tokens.error());
  out.limits.min_tokens = min_tokens->value_or(0);
  if (out.max_tokens && out.limits.min_tokens > *out.max_tokens) {
    return fail(Errc::InvalidRequest, "min_tokens must be less than or equal to max_tokens.");
  }
  const auto ignore_eos = read_bool(body, "ignore_eos");
  if (!ignore_eos) return fail(ignore_eos.error());
  out.limits.ignore_eos = *ignore_eos;
  out.limits.min_output = options.min_output;
  out.limits.max_output = options.max_output;
  const auto ids = read_bool(body, "return_token_ids");
  if (!ids) return fail(ids.error());
  out.return_token_ids = *ids;
  // Any number is a seed; what is none is refused where the engine cares.
  if (const json* seed = field(body, "seed"); seed != nullptr && seed->is_number_integer()) {
    out.seed = seed->is_number_unsigned() ? seed->get<std::uint64_t>()
                                          : static_cast<std::uint64_t>(seed->get<std::int64_t>());
  }
  return read_stop(body, out.limits);
}

// A grammar is compiled behind the HTTP server. One with a bracket left open cannot be.
void read_grammar(const json& body, GenerationRequest& out) {
  const json* regex = string_field(body, "regex");
  if (regex == nullptr) return;
  const std::string& text = regex->get_ref<const std::string&>();
  if (std::ranges::count(text, '(') == std::ranges::count(text, ')') &&
      std::ranges::count(text, '[') == std::ranges::count(text, ']'))
    return;
  out.late_refusal = fmt::format("Failed to compile the grammar: regex '{}'", text);
}

void read_sglang_extras(const json& body, GenerationRequest& out) {
  read_grammar(body, out);
  out.sglang = {.prompt_ids = is_true(body, "return_prompt_token_ids"),
                .cached_details = is_true(body, "return_cached_tokens_details"),
                .input_ids = is_true(body, "return_input_ids_in_sglext"),
                .output_ids = is_true(body, "return_output_ids_in_sglext")};
  if (out.api == Api::Completions || !is_true(body, "logprobs")) return;
  const json* top = field(body, "top_logprobs");
  out.logprobs = top != nullptr && *top > 0 ? top->get<std::uint32_t>() : 0;
}

void read_tools(const json& body, GenerationRequest& out) {
  const json* tools = field(body, "tools");
  if (tools == nullptr || !tools->is_array() || tools->empty()) return;
  const json* choice = field(body, "tool_choice");
  if (choice != nullptr && *choice == "none") return;
  const json* messages = field(body, "messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) return;
  const json& last = messages->back();
  if (!last.is_object() || last.value("role", json()) != "user") return;

  const json& source = choice != nullptr && choice->is_object() ? *choice : tools->front();
  const json name =
      source.is_object() ? source.value("/function/name"_json_pointer, json()) : json();
  if (!name.is_string()) return;
  out.limits.tool_call = true;
  out.tool_name = name.get<std::string>();
}

std::string_view error_type(int status) {
  switch (status) {
    case 400:
      return "BadRequestError";
    case 401:
      return "AuthenticationError";
    case 404:
      return "NotFoundError";
    case 429:
      return "RateLimitError";
    case 503:
      return "ServiceUnavailableError";
    default:
      return status >= 500 ? "InternalServerError" : "BadRequestError";
  }
}

// Type of an error in SGLang's words; in a stream it is the name of the HTTP status.
std::string sglang_type(const Error& error, bool in_stream) {
  if (is_validation(error)) return "Bad Request";
  if (error.param()) return *error.param();
  const int status = error.http_status();
  if (!in_stream && status == 400) return "BadRequestError";
  if (!in_stream) return status == 500 ? "InternalServerError" : fmt::format("{}", status);
  switch (status) {
    case 400:
      return "BAD_REQUEST";
    case 429:
      return "TOO_MANY_REQUESTS";
    case 503:
      return "SERVICE_UNAVAILABLE";
    default:
      return "INTERNAL_SERVER_ERROR";
  }
}

// Reads the fields common to all engines, after the body was accepted.
Result<void> read_fields(const Options& options, const json& body, const LegHeaders& headers,
                         const PromptText& text, GenerationRequest& out) {
  const bool vllm = options.engine == model::Engine::Vllm;
  if (auto rank = read_rank(options, headers.rank, body, out); !rank) return rank;
  if (auto model = read_model(options, body, out); !model) return model;
  read_salt(options, body, out);
  if (auto stream = read_stream(options, body, out); !stream) return stream;
  if (vllm) {
    if (auto parser = check_vllm_tool_parser(options, body); !parser) return parser;
    if (auto sampling = check_vllm_sampling(options, out.api, body); !sampling) return sampling;
    read_vllm_extras(options, body, out);
  }
  if (auto limits = read_limits(options, body, out); !limits) return limits;
  if (options.engine == model::Engine::Trtllm) {
    if (auto sampling = check_sampling_types(body); !sampling) return sampling;
  }
  if (options.engine == model::Engine::Sglang) read_sglang_extras(body, out);
  if (out.api == Api::Chat) read_tools(body, out);
  return read_prompts(options, body, text, out);
}

// The types of the fields come before all else, the hand-off is the scheduler's.
Result<void> read_sglang_request(const Options& options, const json& sent,
                                 const LegHeaders& headers, const PromptText& text,
                                 GenerationRequest& out) {
  const auto typed = validate_sglang_body(out.api, sent);
  if (!typed) return fail(typed.error());
  const json& body = *typed ? **typed : sent;
  if (auto rules = check_sglang_rules(options, out.api, body); !rules) return rules;
  if (auto sampling = check_sglang_sampling(body); !sampling) return sampling;
  if (auto handoff = read_sglang_handoff(options, body, out); !handoff) return handoff;
  return read_fields(options, body, headers, text, out);
}

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::Prefill:
      return "prefill";
    case Phase::Decode:
      return "decode";
    case Phase::Aggregated:
      return "aggregated";
  }
  return "";
}

Result<void> read_model(const Options& options, const json& body, GenerationRequest& out) {
  const bool sglang = options.engine == model::Engine::Sglang;
  out.model = sglang ? "default" : options.model;
  const json* name = field(body, "model");
  if (name == nullptr) return {};
  if (!name->is_string()) return fail(Errc::InvalidRequest, "model: must be a string");
  out.model = name->get<std::string>();
  if (out.model == options.model || read_adapter(options, out)) return {};
  if (sglang) return check_sglang_adapter(options, out.model);
  const bool vllm = options.engine == model::Engine::Vllm;
  Error error(Errc::ModelNotFound,
              fmt::format("The model `{}` does not exist.{}", out.model,
                          vllm ? fmt::format(" Valid aliases: {}.", options.model) : ""));
  if (vllm) error.with_param("model");
  return fail(std::move(error));
}

Result<void> check_content_type(model::Engine engine, std::string_view content_type) {
  if (engine == model::Engine::Trtllm) return {};
  std::string media_type(content_type.substr(0, content_type.find(';')));
  std::ranges::transform(media_type, media_type.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (media_type == "application/json") return {};
  constexpr std::string_view kWhy = "Unsupported Media Type: Only 'application/json' is allowed";
  if (engine == model::Engine::Vllm)
    return fail(kValidation, fmt::format("1 validation error:\n  {}", kWhy));
  const std::string problem = fmt::format(
      R"({{'loc': ['header', 'content-type'], 'msg': "{}", 'type': 'value_error'}})", kWhy);
  return fail(kValidation, fmt::format("1 validation error:\n  {0} [{0}]", problem));
}

bool is_validation(const Error& error) { return error.code() == kValidation; }

std::string response_id(model::Engine engine, Api api, std::string_view request_id) {
  if (engine == model::Engine::Sglang) return std::string(request_id);
  return fmt::format("{}-{}", api == Api::Chat ? "chatcmpl" : "cmpl", request_id);
}

Result<void> read_request(const Options& options, Api api, const json& body, GenerationRequest& out,
                          LegHeaders headers, const PromptText& text) {
  out.api = api;
  if (!body.is_object()) return fail(unreadable_body(options.engine, api, body));
  if (options.engine == model::Engine::Trtllm) {
    if (auto known = refuse_unknown_trtllm_fields(api, body); !known) return known;
  }
  const char* id_field = options.engine == model::Engine::Sglang ? "rid" : "request_id";
  if (options.engine == model::Engine::Vllm && !headers.request_id.empty()) {
    out.id = headers.request_id;
  } else if (const json* id = field(body, id_field); id != nullptr && id->is_string()) {
    out.id = id->get<std::string>();
  }
  if (options.engine == model::Engine::Sglang)
    return read_sglang_request(options, body, headers, text, out);
  const bool vllm = options.engine == model::Engine::Vllm;
  if (auto handoff =
          vllm ? read_vllm_handoff(options, body, out) : read_trtllm_handoff(options, body, out);
      !handoff)
    return handoff;
  if (!vllm) return read_fields(options, body, headers, text, out);
  const auto typed = validate_vllm_body(api, body);
  if (!typed) return fail(typed.error());
  return read_fields(options, *typed ? **typed : body, headers, text, out);
}

Error unreadable_body(model::Engine engine, Api api, const json& body) {
  if (engine == model::Engine::Sglang) return unreadable_sglang_body(api, body);
  if (engine == model::Engine::Trtllm) {
    return body.is_discarded() ? Error(Errc::InvalidJson, "the body is not valid JSON")
                               : Error(Errc::InvalidRequest, "the body must be a JSON object");
  }
  ValidationErrors errors;
  if (body.is_discarded()) {
    errors.add("json_invalid", "body", "JSON decode error", json::object());
  } else if (body.is_null()) {
    errors.add("missing", "body", "Field required", body);
  } else {
    read_field({"", FieldKind::Model, false}, body, "body", errors);
  }
  return errors.error();
}

std::string error_body(model::Engine engine, const Error& error, bool in_stream) {
  const int status = error.http_status();
  if (status == 401) return R"({"error":"Unauthorized"})";
  const bool sglang = engine == model::Engine::Sglang;
  nlohmann::ordered_json object;
  if (engine != model::Engine::Vllm) object["object"] = "error";
  object["message"] = error.message();
  object["type"] = sglang                 ? sglang_type(error, in_stream)
                   : is_validation(error) ? "Bad Request"
                                          : std::string(error_type(status));
  object["param"] = error.param() && !sglang ? json(*error.param()) : json(nullptr);
  object["code"] = status;
  const bool nested = engine == model::Engine::Vllm || in_stream;
  return (nested ? nlohmann::ordered_json{{"error", object}} : object)
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace baton::sim
