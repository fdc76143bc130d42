// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/probe.h"

#include "engine/shared/engine_error.h"
#include "http_client/fetch.h"
#include "model/version.h"
#include "wire/http_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace baton::engine {
namespace {

constexpr int kBadRequest = 400;
using wire::kForbidden;
using wire::kNotFound;
using wire::kOk;
using wire::kUnauthorized;

constexpr model::Version kFirstShowingNixl{.major = 0, .minor = 12, .patch = 0};

using Reader = Result<void> (*)(std::string_view, Facts&);

struct DocumentAt {
  std::string_view path;
  std::string_view older_path;  // its path in earlier releases, if different
  Reader read;
};

constexpr std::array kVllmDocuments{DocumentAt{"/version", {}, read_version},
                                    DocumentAt{"/metrics", {}, read_vllm_metrics}};
constexpr std::array kSglangDocuments{
    DocumentAt{"/server_info", "/get_server_info", read_sglang_server_info}};
constexpr std::array kTrtllmDocuments{DocumentAt{"/version", {}, read_version},
                                      DocumentAt{"/server_info", {}, read_trtllm_server_info}};

std::span<const DocumentAt> documents_of(model::Engine engine) {
  switch (engine) {
    case model::Engine::Vllm:
      return kVllmDocuments;
    case model::Engine::Sglang:
      return kSglangDocuments;
    case model::Engine::Trtllm:
      return kTrtllmDocuments;
  }
  return {};
}

bool wants_a_key(int status) { return status == kUnauthorized || status == kForbidden; }

void note_unknown(Facts& facts, std::string_view path, int status, bool had_key) {
  std::string why = fmt::format("GET {} was answered with status {}", path, status);
  if (wants_a_key(status))
    why += had_key ? ": the worker refuses the key" : ": the worker asks for a key";
  if (!facts.unknown_because.empty()) facts.unknown_because += "; ";
  facts.unknown_because += why;
}

std::string quoted_list(const std::vector<Facts::Card>& cards) {
  constexpr std::size_t kMostNamed = 10;
  std::vector<std::string> names;
  for (const auto& card : std::span(cards).first(std::min(cards.size(), kMostNamed)))
    names.push_back(fmt::format("'{}'", card.id));
  std::string list = fmt::format("{}", fmt::join(names, ", "));
  if (cards.size() > kMostNamed) list += fmt::format(" and {} more", cards.size() - kMostNamed);
  return list;
}

std::string_view disaggregation_mode(model::Role role) {
  return role == model::Role::Aggregated ? "null" : model::to_string(role);
}

std::string key_header(std::string_view authorization) {
  return authorization.empty() ? std::string()
                               : fmt::format("Authorization: {}\r\n", authorization);
}

// vLLM shows the metrics of a connector from its start on, whether or not anything was transferred.
bool lacks_nixl(const model::WorkerSpec& spec, const Facts& facts) {
  const bool wanted =
      spec.engine == model::Engine::Vllm && spec.role != model::Role::Aggregated &&
      (spec.mode() == model::HandoffMode::NixlPull || spec.mode() == model::HandoffMode::NixlPush);
  const auto version = model::parse_version(facts.version);
  return wanted && facts.nixl == false && version && *version >= kFirstShowingNixl;
}

// Refused before anything is computed: no model has such a token.
constexpr std::string_view kOutOfVocabulary =
    R"({"input_ids":[0],"sampling_params":{"max_new_tokens":1,"logit_bias":{"-1":0}}})";

awaitable<void> ask_vocabulary(http_client::UpstreamPool& pool, http_client::Target target,
                               http_client::ExchangeTimeouts timeouts, const std::string& key,
                               Facts& facts) {
  const auto answer = co_await http_client::fetch(
      pool, target,
      {.method = "POST", .path = "/generate", .own_headers = key, .body = kOutOfVocabulary},
      timeouts);
  if (answer && answer->status == kBadRequest) read_sglang_refusal(answer->body, facts);
}

awaitable<void> ask_tokenizer(http_client::UpstreamPool& pool, http_client::Target target,
                              http_client::ExchangeTimeouts timeouts, const std::string& key,
                              Facts& facts) {
  const auto answer = co_await http_client::fetch(
      pool, target,
      {.method = "POST", .path = "/tokenize", .own_headers = key, .body = R"({"prompt":"a"})"},
      timeouts);
  if (answer && answer->status == kBadRequest) read_vllm_tokenize_refusal(answer->body, facts);
}

}  // namespace

awaitable<Result<Facts>> probe_models(http_client::UpstreamPool& pool, http_client::Target target,
                                      http_client::ExchangeTimeouts timeouts,
                                      std::string_view authorization) {
  const std::string key = key_header(authorization);
  Facts facts;
  auto cards = co_await http_client::fetch(pool, target, {.path = "/v1/models", .own_headers = key},
                                           timeouts);
  if (!cards) co_return fail(std::move(cards.error()));
  if (wants_a_key(cards->status)) {
    note_unknown(facts, "/v1/models", cards->status, !key.empty());
    co_return facts;
  }
  if (cards->status != kOk) {
    const Error refusal = read_engine_error(cards->status, cards->body, cards->retry_after);
    const Errc code =
        refusal.code() == Errc::EngineOverloaded ? Errc::EngineOverloaded : Errc::EngineFailed;
    co_return fail(code, fmt::format("GET /v1/models of worker {} was answered with status {}",
                                     target.endpoint.to_string(), cards->status));
  }
  if (auto read = read_model_cards(cards->body, facts); !read)
    co_return fail(std::move(read.error()));
  co_return facts;
}

awaitable<Result<Facts>> probe(http_client::UpstreamPool& pool, http_client::Target target,
                               const model::WorkerSpec& spec,
                               http_client::ExchangeTimeouts timeouts,
                               std::string_view authorization) {
  auto models = co_await probe_models(pool, target, timeouts, authorization);
  if (!models) co_return models;
  Facts facts = std::move(*models);
  const std::string key = key_header(authorization);
  for (const DocumentAt& document : documents_of(facts.engine.value_or(spec.engine))) {
    auto answer = co_await http_client::fetch(
        pool, target, {.path = document.path, .own_headers = key}, timeouts);
    if (answer && answer->status == kNotFound && !document.older_path.empty()) {
      answer = co_await http_client::fetch(
          pool, target, {.path = document.older_path, .own_headers = key}, timeouts);
    }
    if (!answer) co_return fail(std::move(answer.error()));
    if (answer->status == kNotFound) continue;
    if (answer->status != kOk) {
      note_unknown(facts, document.path, answer->status, !key.empty());
    } else if (auto read = document.read(answer->body, facts); !read) {
      co_return fail(std::move(read.error()));
    }
  }
  const model::Engine engine = facts.engine.value_or(spec.engine);
  if (engine == model::Engine::Sglang) co_await ask_vocabulary(pool, target, timeouts, key, facts);
  if (engine == model::Engine::Vllm) co_await ask_tokenizer(pool, target, timeouts, key, facts);
  co_return facts;
}

std::vector<std::string> contradictions(const std::string& model, const model::WorkerSpec& spec,
                                        const Facts& facts) {
  std::vector<std::string> found;
  if (facts.engine && *facts.engine != spec.engine) {
    found.push_back(
        fmt::format("engine is {}, but the server is {}; correct the engine of this worker, or its "
                    "address",
                    model::to_string(spec.engine), model::to_string(*facts.engine)));
  }
  if (!facts.models.empty() && find_card(facts, model) == nullptr) {
    found.push_back(fmt::format(
        "the model is '{0}', but the server serves {1}; start it with '{0}' as its served model "
        "name, or name the model as the server does and make '{0}' an alias of it",
        model, quoted_list(facts.models)));
  }
  if (facts.role && *facts.role != spec.role) {
    found.push_back(fmt::format(
        "role is {}, but the engine was started with --disaggregation-mode {}; correct the role of "
        "this worker, or start the engine with --disaggregation-mode {}",
        model::to_string(spec.role), disaggregation_mode(*facts.role),
        disaggregation_mode(spec.role)));
  }
  if (facts.data_parallel_size && spec.data_parallel_size != 1 &&
      *facts.data_parallel_size != spec.data_parallel_size) {
    found.push_back(
        fmt::format("data_parallel_size is {0}, but the engine has {1} {2} at this "
                    "address; set data_parallel_size to {1}",
                    spec.data_parallel_size, *facts.data_parallel_size,
                    *facts.data_parallel_size == 1 ? "rank" : "ranks"));
  }
  // Engines name a port whatever their role; only a prefill worker opens it.
  if (spec.role == model::Role::Prefill && facts.bootstrap_port && spec.bootstrap_port &&
      *facts.bootstrap_port != *spec.bootstrap_port) {
    found.push_back(
        fmt::format("bootstrap_port is {0}, but the engine's is {1}; set "
                    "bootstrap_port to {1}, or leave it out",
                    *spec.bootstrap_port, *facts.bootstrap_port));
  }
  if (facts.ids_only) {
    found.emplace_back(
        "the server has no tokenizer and answers chats with errors; start it without "
        "--tokens-only and --skip-tokenizer-init");
  }
  if (lacks_nixl(spec, facts)) {
    found.push_back(fmt::format(
        "role is {}, but the server has no NIXL connector (no vllm:nixl_* in its /metrics); "
        "start it with a NIXL connector in --kv-transfer-config, or make it an aggregated "
        "worker",
        model::to_string(spec.role)));
  }
  return found;
}

}  // namespace baton::engine
