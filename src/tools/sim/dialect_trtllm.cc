// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// TensorRT-LLM's hand-off fields.
#include "libs/base64/base64.h"
#include "tools/sim/address.h"
#include "tools/sim/dialect.h"
#include "tools/sim/dialect_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace baton::sim {
namespace {

using model::Role;
using nlohmann::json;

constexpr std::int64_t kLeastDisaggRequestId = std::int64_t{1} << 40;

// Context first: the context answer's parameters and its token ids.
Result<void> read_after_context(const json& params, const json& body, GenerationRequest& out) {
  const json* state = field(params, "encoded_opaque_state");
  if (state == nullptr || !state->is_string()) {
    return fail(Errc::InvalidRequest, "disaggregated_params: encoded_opaque_state is required");
  }
  auto source = decode_opaque_state(state->get_ref<const std::string&>());
  if (!source) return fail(source.error());
  out.sources.push_back(std::move(*source));

  const json* first = field(params, "first_gen_tokens");
  if (first == nullptr || !first->is_array() || first->empty() ||
      !first->front().is_number_unsigned()) {
    return fail(Errc::InvalidRequest, "disaggregated_params: first_gen_tokens is required");
  }
  out.first_token = first->front().get<TokenId>();
  const json* ctx = field(params, "ctx_request_id");
  if (ctx == nullptr || !ctx->is_number_integer()) {
    return fail(Errc::InvalidRequest, "disaggregated_params: ctx_request_id is required");
  }
  if (fmt::format("ctx-{}", ctx->get<std::int64_t>()) != out.sources.front().key) {
    return fail(Errc::InvalidRequest,
                "disaggregated_params: ctx_request_id does not belong to encoded_opaque_state");
  }
  const json* ids = field(body, out.api == Api::Chat ? "prompt_token_ids" : "prompt");
  if (ids == nullptr || !ids->is_array() || ids->empty() || !ids->front().is_number()) {
    return fail(Errc::InvalidRequest,
                "a generation_only request must carry the prompt as token ids");
  }
  return {};
}

std::string meeting_key(std::int64_t disagg_request_id) {
  return fmt::format("disagg-{}", disagg_request_id);
}

// Generation first: the context worker's own parameters, and the id that both legs carry.
Result<void> read_beside_context(const json& params, GenerationRequest& out) {
  const json* ctx = field(params, "ctx_request_id");
  if (ctx == nullptr || *ctx != *out.disagg_request_id) {
    return fail(Errc::InvalidRequest,
                "disaggregated_params: ctx_request_id must be the disagg_request_id");
  }
  const json* endpoint = string_field(params, "ctx_info_endpoint");
  auto address = endpoint == nullptr
                     ? std::nullopt
                     : parse_address("tcp://", endpoint->get_ref<const std::string&>());
  if (!address) {
    return fail(Errc::InvalidRequest,
                "disaggregated_params: ctx_info_endpoint must be one tcp://host:port");
  }
  out.sources.push_back({.host = std::move(address->host),
                         .port = address->port,
                         .engine_id = {},
                         .key = meeting_key(*out.disagg_request_id),
                         .wait_for_prefill = true});
  return {};
}

// The order in which a server expects its legs is a matter of its configuration.
Result<void> check_schedule_style(const Options& options, const json& params,
                                  const GenerationRequest& out) {
  const bool together = options.mode() == model::HandoffMode::GenerationFirst;
  const json* style = field(params, "schedule_style");
  if ((style == nullptr ? json(0) : *style) != (together ? 1 : 0)) {
    return fail(Errc::InvalidRequest,
                fmt::format("disaggregated_params: this server runs {} (schedule_style {})",
                            together ? "generation first" : "context first", together ? 1 : 0));
  }
  if (together && !out.disagg_request_id) {
    return fail(Errc::InvalidRequest, "disaggregated_params: disagg_request_id is required");
  }
  return {};
}

}  // namespace

Result<void> read_trtllm_handoff(const Options& options, const json& body, GenerationRequest& out) {
  const json* params = field(body, "disaggregated_params");
  if (params == nullptr) return {};
  if (!params->is_object()) {
    return fail(Errc::InvalidRequest, "disaggregated_params: must be an object");
  }
  if (options.role == Role::Aggregated) {
    return fail(Errc::InvalidRequest, "this server has no cache transceiver");
  }
  if (const json* id = field(*params, "disagg_request_id"); id != nullptr) {
    if (!id->is_number_integer() || *id < kLeastDisaggRequestId ||
        *id > std::numeric_limits<std::int64_t>::max()) {
      return fail(Errc::InvalidRequest,
                  "disaggregated_params: disagg_request_id must be an integer of at least 2^40");
    }
    out.disagg_request_id = id->get<std::int64_t>();
  }
  out.phase = phase_of(options.engine, options.role, body);
  if (out.phase == Phase::Aggregated) {
    return fail(Errc::InvalidRequest,
                "disaggregated_params: request_type must be context_only or generation_only");
  }
  if (count_prompts(body) > 1) {
    return fail(Errc::InvalidRequest, "a disaggregated request carries one prompt");
  }
  if (auto style = check_schedule_style(options, *params, out); !style) return style;
  const bool together = options.mode() == model::HandoffMode::GenerationFirst;
  if (out.phase == Phase::Prefill) {
    if (is_true(body, "stream")) {
      return fail(Errc::InvalidRequest, "a context_only request cannot be streamed");
    }
    if (together)
      out.meetings.assign(count_samples(body), {meeting_key(*out.disagg_request_id), {}});
    return {};
  }
  return together ? read_beside_context(*params, out) : read_after_context(*params, body, out);
}

std::string encode_opaque_state(const HandoffSource& source) {
  const std::string plain = json{
      {"host", source.host},
      {"port", source.port},
      {"engine_id", source.engine_id},
      {"key", source.key},
      {"blocks", source.blocks}}.dump();
  return base64::encode(plain);
}

Result<HandoffSource> decode_opaque_state(const std::string& text) {
  const json state = json::parse(base64::decode(text).value_or(""), nullptr, false);
  const json* host = field(state, "host");
  const auto port = port_of(field(state, "port"));
  const json* engine_id = field(state, "engine_id");
  const json* key = field(state, "key");
  const json* blocks = field(state, "blocks");
  if (host == nullptr || !host->is_string() || !port || engine_id == nullptr ||
      !engine_id->is_string() || key == nullptr || !key->is_string() || blocks == nullptr ||
      !blocks->is_array()) {
    return fail(Errc::InvalidRequest, "encoded_opaque_state cannot be decoded");
  }
  HandoffSource source{.host = host->get<std::string>(),
                       .port = *port,
                       .engine_id = engine_id->get<std::string>(),
                       .key = key->get<std::string>(),
                       .blocks = {}};
  for (const json& block : *blocks) {
    if (block.is_number_unsigned()) source.blocks.push_back(block.get<std::uint32_t>());
  }
  return source;
}

}  // namespace baton::sim
