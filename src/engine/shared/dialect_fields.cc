// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/dialect_fields.h"

#include "wire/json_array.h"
#include "wire/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace baton::engine {
namespace {

// The engines' limit for a completion whose client sets none.
constexpr std::int64_t kDefaultMaxTokens = 16;

// Fields of a client's body that no worker gets: another router's routing, which also names workers
// and which TensorRT-LLM would refuse; SGLang's name of a request, which is a prefix that aborts
// others; and data of TensorRT-LLM's own router about the prompt, which would contradict Baton.
constexpr std::array<std::string_view, 5> kRouterFields{
    "nvext", "rid", "prompt_token_ids_b64", "injected_chat_template_kwargs", "conversation_params"};

void select_choice(wire::JsonSplice& splice, const wire::JsonObject& body, std::uint32_t choice) {
  if (body.has("n")) splice.set("n", "1");
  const auto seed = body.find_integer("seed");
  if (!seed || choice == 0) return;
  // Engines count the seed up for each choice, too. Past the largest it starts over.
  splice.set("seed", fmt::format("{}", static_cast<std::int64_t>(static_cast<std::uint64_t>(*seed) +
                                                                 choice)));
}

// Field that carries a chat's prompt ids beside its messages; in vLLM it is in kv_transfer_params.
std::string_view chat_ids_field(model::Engine engine) {
  return engine == model::Engine::Sglang ? "input_ids" : "prompt_token_ids";
}

// The tokens of the prompt and of the answer so far, as one list.
std::string prompt_so_far(const Progress& progress) {
  if (progress.prompt_token_ids.empty()) return "[" + progress.token_ids + "]";
  std::string ids = progress.prompt_token_ids;
  if (progress.token_ids.empty()) return ids;
  ids.pop_back();
  if (ids.find_first_of("0123456789") != std::string::npos) ids += ',';
  return ids.append(progress.token_ids).append("]");
}

void lower(wire::JsonSplice& splice, const wire::JsonObject& body, std::string_view field,
           std::int64_t by, std::int64_t least) {
  const auto value = body.find_integer(field);
  if (value) splice.set(field, fmt::format("{}", *value > by + least ? *value - by : least));
}

void continue_from(wire::JsonSplice& splice, const ClientCall& call, model::Engine engine) {
  const Progress& progress = *call.progress;
  lower(splice, call.body, "max_tokens", progress.produced, 1);
  lower(splice, call.body, "max_completion_tokens", progress.produced, 1);
  lower(splice, call.body, "min_tokens", progress.produced, 0);
  if (call.api == Api::Completions) {
    set_prompt_ids(splice, call, engine, prompt_so_far(progress));
    // Engines apply a limit even if the client set none.
    if (!call.body.find_integer("max_tokens")) {
      const std::int64_t rest = *token_limit(call) - progress.produced;
      splice.set("max_tokens", fmt::format("{}", std::max<std::int64_t>(1, rest)));
    }
    return;
  }
  set_prompt_ids(splice, call, engine, prompt_so_far(progress));
}

// Whether the answer is the same for the text and for its token ids. An engine repeats the prompt,
// appends a suffix and cuts it to length as text; a prompt that the client gave as ids stays as it
// is.
bool ids_stand_for_text(const ClientCall& call, model::Engine engine) {
  const wire::JsonObject& body = call.body;
  if (body.find_bool("echo") == true || body.find_bool("use_beam_search") == true) return false;
  for (const std::string_view field : {"suffix", "truncate_prompt_tokens", "prompt_embeds"}) {
    if (says_something(body.find(field))) return false;
  }
  if (call.api == Api::Completions)
    return !is_token_ids(call.prompt.empty() ? body.find("prompt").value_or("null") : call.prompt);
  return engine == model::Engine::Vllm || !says_something(body.find(chat_ids_field(engine)));
}

bool carries_token_ids(const ClientCall& call, model::Engine engine) {
  return !call.token_ids.empty() && ids_stand_for_text(call, engine);
}

constexpr std::string_view kVllmIds = "prompt_token_ids";
constexpr std::string_view kTransferParams = "kv_transfer_params";
// Members of vLLM's hand-off object that a client may set: LMCache's settings for one request.
constexpr std::string_view kSettings = "lmcache.";

std::string settings_of(const wire::JsonObject& body) {
  std::string found;
  const auto params = body.find_object(kTransferParams);
  if (!params) return found;
  params->each([&](std::string_view key, std::string_view value) {
    if (!key.starts_with(kSettings)) return;
    fmt::format_to(std::back_inserter(found), R"({}"{}":{})", found.empty() ? "" : ",", key, value);
  });
  return found;
}

// `raw` is what a client has for kv_transfer_params.
bool is_settings_only(std::string_view raw) {
  const auto params = wire::JsonObject::within(raw);
  bool any = false;
  bool only = params.has_value();
  if (!params) return false;
  params->each([&](std::string_view key, std::string_view) {
    any = true;
    only = only && key.starts_with(kSettings);
  });
  return any && only;
}

// vLLM 0.32 makes engine arguments of the members of `vllm_xargs`, so these stand for the fields of
// the same names; the last one has the engine tell KV events of blocks that it had before.
constexpr std::string_view kXargs = "vllm_xargs";
struct EngineArgument {
  std::string_view name;
  std::string_view path;
};
constexpr std::array<EngineArgument, 3> kEngineArguments{
    {{"kv_transfer_params", "vllm_xargs.kv_transfer_params"},
     {"ec_transfer_params", "vllm_xargs.ec_transfer_params"},
     {"kv_cache_report_mode", "vllm_xargs.kv_cache_report_mode"}}};

// `raw` is what a client has for vllm_xargs.
std::optional<std::string_view> engine_argument_in(std::string_view raw) {
  if (!raw.starts_with('{')) return std::nullopt;
  const auto arguments = wire::JsonObject::within(raw);
  if (!arguments) return kXargs;  // more members than are looked through
  const auto found = std::ranges::find_if(
      kEngineArguments, [&](const EngineArgument& one) { return arguments->has(one.name); });
  return found == kEngineArguments.end() ? std::nullopt : std::optional(found->path);
}

void remove_engine_arguments(wire::JsonSplice& splice, const wire::JsonObject& body) {
  const auto raw = body.find(kXargs);
  if (!raw || !engine_argument_in(*raw)) return;
  const auto arguments = wire::JsonObject::within(*raw);
  if (!arguments) {
    splice.remove(kXargs);
    return;
  }
  wire::JsonSplice rest(*arguments);
  for (const EngineArgument& argument : kEngineArguments) rest.remove(argument.name);
  splice.set(kXargs, rest.build().joined());
}

// `params` must be a JSON object.
std::string with_settings(const wire::JsonObject& body, const std::string& params) {
  const std::string settings = settings_of(body);
  if (settings.empty()) return params;
  const std::size_t first = params.find_first_not_of(" \t\r\n", params.find('{') + 1);
  return fmt::format("{{{}{}{}", settings, params[first] == '}' ? "" : ",", params.substr(first));
}

// `params` is vLLM's hand-off object; what stands in front of the ids that are put into it.
std::string before_ids(std::string params) {
  const auto object = wire::JsonObject::within(params);
  if (!object) return {};
  if (object->has(kVllmIds)) params = wire::JsonSplice(*object).remove(kVllmIds).build().joined();
  const std::size_t end = params.rfind('}');
  const std::size_t last = params.find_last_not_of(" \t\r\n", end - 1);
  const std::string_view separator = params[last] == '{' ? "" : ",";
  params.resize(end);
  return params.append(separator).append("\"").append(kVllmIds).append("\":");
}

std::string_view ids_field(Api api, model::Engine engine) {
  return api == Api::Completions ? "prompt" : chat_ids_field(engine);
}

// vLLM takes a chat's ids inside its hand-off object, which is written last.
bool goes_with_handoff(const ClientCall& call, model::Engine engine) {
  return engine == model::Engine::Vllm && call.api == Api::Chat;
}

wire::JsonSplice leg_body(const ClientCall& call, model::Engine engine) {
  wire::JsonSplice splice(call.body);
  for (const std::string_view field : kHandoffFields) splice.remove(field);
  for (const std::string_view field : kRouterFields) splice.remove(field);
  if (engine == model::Engine::Vllm) remove_engine_arguments(splice, call.body);
  for (const std::string& field : call.stripped) splice.remove(field);
  if (!call.model.empty()) splice.set("model", wire::json_quote(call.model));
  if (call.choice) select_choice(splice, call.body, *call.choice);
  if (!call.prompt.empty()) splice.set("prompt", call.prompt);
  if (call.progress != nullptr) {
    continue_from(splice, call, engine);
  } else if (carries_token_ids(call, engine) && !goes_with_handoff(call, engine)) {
    splice.set_long(ids_field(call.api, engine), {}, call.token_ids, {});
  }
  // TensorRT-LLM takes a salt in chats only, and refuses fields it does not know.
  const bool saltable = engine != model::Engine::Trtllm || call.api == Api::Chat;
  if (!call.cache_salt.empty() && saltable && !call.body.has("cache_salt"))
    splice.set("cache_salt", wire::json_quote(call.cache_salt));
  if (call.name && engine == model::Engine::Sglang)
    splice.set("rid", wire::json_quote(call.name.text()));
  return splice;
}

// Without `stream` they are an error, which is better found before the prompt is computed.
void remove_stream_options(wire::JsonSplice& splice, const wire::JsonObject& body) {
  if (body.find_bool("stream") == true) splice.remove("stream_options");
}

}  // namespace

std::optional<std::string_view> handoff_field_in(const wire::JsonObject& body) {
  std::optional<std::string_view> found;
  body.each([&](std::string_view key, std::string_view value) {
    if (found || value == "null") return;
    const std::string name = wire::unescape(key);
    if (name == kXargs) {
      found = engine_argument_in(value);
    } else if (name != kTransferParams || !is_settings_only(value)) {
      const auto* const field = std::ranges::find(kHandoffFields, name);
      if (field != kHandoffFields.end()) found = *field;
    }
  });
  return found;
}

bool says_something(std::optional<std::string_view> raw) {
  return raw && *raw != "null" && *raw != R"("")" && *raw != "[]" && *raw != "{}";
}

bool is_token_ids(std::string_view prompt) {
  // Looks behind a bounded number of blanks only: each leg calls this.
  constexpr std::size_t kMostBlanks = 4096;
  if (!prompt.starts_with('[')) return false;
  const std::string_view begin = prompt.substr(0, kMostBlanks);
  const std::size_t first = begin.find_first_not_of(" \t\r\n", 1);
  return first != begin.npos && begin[first] >= '0' && begin[first] <= '9';
}

std::optional<std::int64_t> token_limit(const ClientCall& call) {
  if (call.api == Api::Completions) {
    return call.body.find_integer("max_tokens").value_or(kDefaultMaxTokens);
  }
  const auto limit = call.body.find_integer("max_completion_tokens");
  return limit ? limit : call.body.find_integer("max_tokens");
}

bool gives_token_ids(model::Engine engine, Api api) {
  return engine == model::Engine::Vllm ||
         (engine == model::Engine::Sglang && api == Api::Completions);
}

bool needs_one_worker(const wire::JsonObject& body) {
  const auto prompt_logprobs = body.find("prompt_logprobs");
  return body.find_bool("use_beam_search") == true || body.find_integer("best_of") > 1 ||
         body.find_bool("echo") == true || (prompt_logprobs && *prompt_logprobs != "null");
}

wire::JsonSplice prefill_leg(const ClientCall& call, model::Engine engine) {
  wire::JsonSplice splice = leg_body(call, engine);
  splice.set("stream", "false");
  remove_stream_options(splice, call.body);
  return splice;
}

wire::JsonSplice answer_leg(const ClientCall& call, model::Engine engine, DecodePurpose purpose) {
  wire::JsonSplice splice = leg_body(call, engine);
  if (purpose == DecodePurpose::Release) {
    shape_as_single_token(splice, call.body);
  } else if (call.with_token_ids && gives_token_ids(engine, call.api)) {
    splice.set("return_token_ids", "true");
  }
  return splice;
}

void shape_as_single_token(wire::JsonSplice& splice, const wire::JsonObject& body) {
  splice.set("stream", "false");
  remove_stream_options(splice, body);
  splice.remove("min_tokens");
  // Two names of one field to TensorRT-LLM, which refuses the second: only what the client used.
  const bool newer = body.has("max_completion_tokens");
  if (newer) splice.set("max_completion_tokens", "1");
  if (!newer || body.has("max_tokens")) splice.set("max_tokens", "1");
  if (body.has("n")) splice.set("n", "1");
}

void set_kv_transfer_params(wire::JsonSplice& splice, const ClientCall& call,
                            const std::string& given) {
  const std::string params = with_settings(call.body, given);
  const bool with_ids = call.api == Api::Chat &&
                        (call.progress != nullptr || carries_token_ids(call, model::Engine::Vllm));
  const std::string before = with_ids ? before_ids(params) : std::string();
  if (before.empty()) {
    splice.set(kTransferParams, params);
  } else if (call.progress != nullptr) {
    splice.set(kTransferParams, before + prompt_so_far(*call.progress) + "}");
  } else {
    splice.set_long(kTransferParams, before, call.token_ids, "}");
  }
}

void set_ids_alone(wire::JsonSplice& splice, const ClientCall& call, model::Engine engine) {
  if (call.progress == nullptr && goes_with_handoff(call, engine) &&
      carries_token_ids(call, engine)) {
    set_kv_transfer_params(splice, call, "{}");
  } else if (engine == model::Engine::Vllm && !settings_of(call.body).empty() &&
             (call.progress == nullptr || !goes_with_handoff(call, engine))) {
    splice.set(kTransferParams, with_settings(call.body, "{}"));
  }
}

void set_prompt_ids(wire::JsonSplice& splice, const ClientCall& call, model::Engine engine,
                    std::string_view ids) {
  if (call.api == Api::Chat && engine == model::Engine::Vllm) {
    splice.set(kTransferParams, before_ids(with_settings(call.body, "{}")).append(ids).append("}"));
  } else {
    splice.set(ids_field(call.api, engine), ids);
  }
}

}  // namespace baton::engine
