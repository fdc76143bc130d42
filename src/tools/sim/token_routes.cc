// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/token_routes.h"

#include "model/version.h"
#include "tools/sim/dialect.h"
#include "tools/sim/dialect_fields.h"
#include "tools/sim/prompt.h"
#include "tools/sim/sglang_body.h"
#include "tools/sim/validation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <utility>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr model::Version kFirstRenderingVllm{.major = 0, .minor = 16, .patch = 0};
constexpr model::Version kFirstScaleOutVllm{.major = 0, .minor = 30, .patch = 0};

std::string written(const ordered_json& answer) {
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<json> parsed(const Options& options, const std::string& body,
                    const SglangRoute& route = {}) {
  json request = body.empty() ? json() : json::parse(body, nullptr, false);
  if (request.is_object()) return request;
  if (options.engine == Engine::Sglang) return fail(unreadable_sglang_body(route, request));
  return fail(unreadable_body(options.engine, Api::Completions, request));
}

Result<void> check_vllm_tokenize(const Options& options, const json& request) {
  if (field(request, "prompt") == nullptr && field(request, "messages") == nullptr) {
    ValidationErrors errors;
    for (const char* name : {"body.prompt", "body.messages"})
      errors.add("missing", name, "Field required", request);
    return fail(errors.error());
  }
  GenerationRequest asked;
  return read_model(options, request, asked);
}

Result<std::string> tokenize(const Options& options, const TokenSource& tokens,
                             std::string_view path, const std::string& body) {
  const auto request = parsed(options, body, {"openai_v1_tokenize", fmt::format("POST {}", path)});
  if (!request) return fail(request.error());
  const json* prompt = field(*request, "prompt");
  const bool chat = field(*request, "messages") != nullptr;
  const bool several = prompt != nullptr && prompt->is_array();
  if (options.engine == Engine::Vllm) {
    if (auto checked = check_vllm_tokenize(options, *request); !checked)
      return fail(std::move(checked.error()));
  } else if (auto checked = check_sglang_tokenize(path, *request); !checked) {
    return fail(std::move(checked.error()));
  }
  if (chat == (prompt != nullptr) || (several && options.engine == Engine::Vllm))
    return fail(Errc::InvalidRequest, "exactly one of prompt and messages is required");
  auto prompts = tokens.prompts(chat ? Api::Chat : Api::Completions, *request, body);
  if (!prompts) return fail(std::move(prompts.error()));
  ordered_json answer;
  if (several) {
    for (const auto& one : *prompts) answer["count"].push_back(one.size());
    answer["tokens"] = *prompts;
  } else {
    answer["count"] = prompts->front().size();
    answer["tokens"] = prompts->front();
  }
  answer["max_model_len"] = options.max_model_len;
  if (options.engine == Engine::Vllm) answer["token_strs"] = nullptr;
  return written(answer);
}

// SGLang: of several lists.
Result<std::string> texts_of(const TokenSource& tokens, const json& lists) {
  ordered_json texts = ordered_json::array();
  for (const json& list : lists) {
    const auto ids = token_list(list, "tokens");
    if (!ids) return fail(ids.error());
    texts.push_back(tokens.text(*ids, true).value_or(""));
  }
  return written({{"text", std::move(texts)}});
}

Result<std::string> detokenize(const Options& options, const TokenSource& tokens,
                               std::string_view path, const std::string& body) {
  const auto request =
      parsed(options, body, {"openai_v1_detokenize", fmt::format("POST {}", path)});
  if (!request) return fail(request.error());
  if (options.engine == Engine::Sglang) {
    if (auto checked = check_sglang_detokenize(path, *request); !checked)
      return fail(std::move(checked.error()));
  }
  const json* list = field(*request, "tokens");
  if (list == nullptr || !list->is_array())
    return fail(Errc::InvalidRequest, "tokens: a list is required");
  if (options.engine == Engine::Sglang && !list->empty() && list->front().is_array())
    return texts_of(tokens, *list);
  const auto ids = token_list(*list, "tokens");
  if (!ids) return fail(ids.error());
  // SGLang leaves special tokens out unless it is told not to.
  const bool vllm = options.engine == Engine::Vllm;
  const bool skip = !vllm && request->value("skip_special_tokens", json(true)) != false;
  return written({{vllm ? "prompt" : "text", tokens.text(*ids, skip).value_or("")}});
}

// A request as it goes to an engine without a frontend.
Result<std::string> render(const Options& options, const TokenSource& tokens, Api api,
                           const std::string& body) {
  const auto request = parsed(options, body);
  if (!request) return fail(request.error());
  GenerationRequest understood;
  if (auto read = read_request(options, api, *request, understood, {}, {tokens, body}); !read)
    return fail(std::move(read.error()));
  ordered_json answer = ordered_json::array();
  for (const auto& prompt : understood.prompts) {
    answer.push_back({{"request_id", response_id(options.engine, api, "render")},
                      {"token_ids", prompt},
                      {"features", nullptr},
                      {"sampling_params",
                       {{"max_tokens", understood.max_tokens.value_or(options.max_model_len)}}},
                      {"model", understood.model},
                      {"stream", understood.stream},
                      {"cache_salt", nullptr},
                      {"priority", 0},
                      {"kv_transfer_params", nullptr}});
  }
  return written(api == Api::Chat ? answer.front() : answer);
}

}  // namespace

std::optional<Result<std::string>> token_answer(const Options& options, const TokenSource& tokens,
                                                std::string_view path, const std::string& body) {
  if (options.engine == Engine::Trtllm) return std::nullopt;
  const bool sglang = options.engine == Engine::Sglang;
  if (path == "/tokenize" || (sglang && path == "/v1/tokenize"))
    return tokenize(options, tokens, path, body);
  // A token id of the simulator's own is a hash.
  if (tokens.can_be_known() && (path == "/detokenize" || (sglang && path == "/v1/detokenize")))
    return detokenize(options, tokens, path, body);
  if (sglang || options.release() < kFirstRenderingVllm) return std::nullopt;
  const bool renders = path == "/v1/chat/completions/render" || path == "/v1/completions/render";
  if (renders && options.release() >= kFirstScaleOutVllm && !options.scale_out) {
    return fail(Errc::Forbidden, "scale-out endpoints are disabled: start with --enable-scale-out");
  }
  if (path == "/v1/chat/completions/render") return render(options, tokens, Api::Chat, body);
  if (path == "/v1/completions/render") return render(options, tokens, Api::Completions, body);
  return std::nullopt;
}

}  // namespace baton::sim
