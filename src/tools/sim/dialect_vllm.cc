// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The hand-off fields of vLLM's three connectors.
#include "tools/sim/address.h"
#include "tools/sim/dialect.h"
#include "tools/sim/dialect_fields.h"
#include "tools/sim/vllm_release.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace baton::sim {
namespace {

using model::HandoffMode;
using model::Role;
using nlohmann::json;

// The name that both legs give a prompt: that of its request without the random end.
std::string shared_key(const std::string& response, std::size_t index) {
  return fmt::format("{}-{}", response, index);
}

std::uint32_t size_of(const json* value, std::uint32_t when_absent) {
  if (value == nullptr) return when_absent;
  const bool usable =
      value->is_number_unsigned() && *value <= std::numeric_limits<std::uint32_t>::max();
  return usable ? value->get<std::uint32_t>() : 0;
}

// The holder of the blocks, in both NIXL modes. nullopt if the connector would ignore the
// parameters.
std::optional<HandoffSource> read_nixl_peer(const Options& options, const json& params) {
  const json* host = string_field(params, "remote_host");
  const auto port = port_of(field(params, "remote_port"));
  const json* engine_id = string_field(params, "remote_engine_id");
  const json* request_id = string_field(params, "remote_request_id");
  const bool named = request_id != nullptr || options.release() < kVllmTellsRequestId;
  if (host == nullptr || !port || engine_id == nullptr || !named) return std::nullopt;
  return HandoffSource{.host = host->get<std::string>(),
                       .port = *port,
                       .engine_id = engine_id->get<std::string>(),
                       .key = request_id ? request_id->get<std::string>() : std::string()};
}

Result<void> read_pull(const Options& options, const json& params, const json& body,
                       GenerationRequest& out) {
  auto source = read_nixl_peer(options, params);
  const json* block_ids = field(params, "remote_block_ids");
  if (!source || block_ids == nullptr || !block_ids->is_array()) {
    out.recompute = true;
    return {};
  }
  const bool grouped = options.release() >= kVllmGroupsBlocks;
  for (const json& group : grouped ? *block_ids : json::array({*block_ids})) {
    for (const json& block : group) {
      if (block.is_number_unsigned()) source->blocks.push_back(block.get<std::uint32_t>());
    }
  }
  const std::string response = response_id(model::Engine::Vllm, out.api, out.id);
  for (std::size_t i = 0; i < count_prompts(body); ++i) {
    if (options.release() < kVllmTellsRequestId) source->key = shared_key(response, i);
    out.sources.push_back(*source);
  }
  return {};
}

Result<void> read_push(const Options& options, const json& params, const json& body,
                       GenerationRequest& out) {
  auto source = read_nixl_peer(options, params);
  if (!source) {
    out.recompute = true;
    return {};
  }
  // The legs find each other by the request's id, which the parameters repeat in one of its forms.
  const std::string response = response_id(model::Engine::Vllm, out.api, out.id);
  const std::string& told = source->key;
  if (told != out.id && told != response && !told.starts_with(response + "-")) {
    return fail(Errc::InvalidRequest,
                "kv_transfer_params: remote_request_id is not the id of this request");
  }
  source->wait_for_prefill = true;
  source->sizes =
      ParallelSizes{size_of(field(params, "tp_size"), 0), size_of(field(params, "pp_size"), 1)};
  for (std::size_t i = 0; i < count_prompts(body); ++i) {
    source->key = shared_key(response, i);
    out.sources.push_back(*source);
  }
  return {};
}

Result<void> read_mooncake(const json& params, GenerationRequest& out) {
  const json* address = string_field(params, "remote_bootstrap_addr");
  const json* engine_id = string_field(params, "remote_engine_id");
  const json* transfer_id = string_field(params, "transfer_id");
  if (address == nullptr || engine_id == nullptr || transfer_id == nullptr) {
    out.recompute = true;
    return {};
  }
  auto bootstrap = parse_address("http://", address->get_ref<const std::string&>());
  if (!bootstrap) {
    return fail(Errc::InvalidRequest,
                "kv_transfer_params: remote_bootstrap_addr must be http://host:port");
  }
  out.sources.push_back({.host = std::move(bootstrap->host),
                         .port = bootstrap->port,
                         .engine_id = engine_id->get<std::string>(),
                         .key = transfer_id->get<std::string>(),
                         .wait_for_prefill = true,
                         .at_bootstrap = true});
  return {};
}

Result<void> read_decode_leg(const Options& options, const json& params, const json& body,
                             GenerationRequest& out) {
  switch (options.mode()) {
    case HandoffMode::NixlPush:
      return read_push(options, params, body, out);
    case HandoffMode::Mooncake:
      return read_mooncake(params, out);
    default:
      return read_pull(options, params, body, out);
  }
}

Result<void> read_prefill_leg(HandoffMode mode, const json& params, const json& body,
                              GenerationRequest& out) {
  if (mode == HandoffMode::NixlPush) {
    const std::string response = response_id(model::Engine::Vllm, out.api, out.id);
    for (std::size_t i = 0; i < count_prompts(body) * count_samples(body); ++i) {
      out.meetings.push_back({.key = shared_key(response, i), .rank = {}});
    }
  }
  if (mode == HandoffMode::Mooncake) {
    const json* transfer_id = string_field(params, "transfer_id");
    if (transfer_id == nullptr) {
      return fail(Errc::InvalidRequest, "kv_transfer_params: transfer_id is required");
    }
    out.meetings.push_back({.key = transfer_id->get<std::string>(), .rank = {}});
  }
  return {};
}

}  // namespace

void read_vllm_extras(const Options& options, const json& body, GenerationRequest& out) {
  const auto count = [&body](const char* name) {
    const json* value = field(body, name);
    return value == nullptr ? std::nullopt : std::optional(value->get<std::uint32_t>());
  };
  const bool chat = out.api == Api::Chat;
  out.echo = is_true(body, "echo");
  out.tokens_as_ids = is_true(body, "return_tokens_as_token_ids");
  const auto top = count(chat ? "top_logprobs" : "logprobs");
  if (!chat) out.logprobs = top;
  if (chat && is_true(body, "logprobs")) out.logprobs = top.value_or(0);
  out.prompt_logprobs = count("prompt_logprobs");
  if (!out.prompt_logprobs && out.echo) out.prompt_logprobs = chat ? top.value_or(0) : top;
  if (chat && is_true(body, "return_prompt_text")) out.prompt_text.emplace();
  out.stream_interval = std::max(options.stream_interval, count("stream_interval").value_or(1));
}

Result<void> read_vllm_handoff(const Options& options, const json& body, GenerationRequest& out) {
  const json* params = field(body, "kv_transfer_params");
  if (params == nullptr) return {};
  if (!params->is_object()) return {};  // refused with all other types
  // A server without a connector does not look at them.
  if (options.role == Role::Aggregated) return {};
  const Phase phase = phase_of(options.engine, options.role, body);
  const bool ours = (phase == Phase::Prefill && options.role == Role::Prefill) ||
                    (phase == Phase::Decode && options.role == Role::Decode);
  if (!ours) return {};
  const HandoffMode mode = options.mode();
  if (mode == HandoffMode::Mooncake && count_prompts(body) * count_samples(body) > 1) {
    return fail(Errc::InvalidRequest, "kv_transfer_params: a transfer_id carries one sequence");
  }
  if (auto read = phase == Phase::Prefill ? read_prefill_leg(mode, *params, body, out)
                                          : read_decode_leg(options, *params, body, out);
      !read) {
    return read;
  }
  if (!out.recompute) out.phase = phase;
  return {};
}

}  // namespace baton::sim
