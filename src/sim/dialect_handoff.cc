// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The hand-off fields of the three engines.
#include "sim/base64.h"
#include "sim/dialect.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace baton::sim {
namespace {

using model::Engine;
using model::Role;
using nlohmann::json;

constexpr std::int64_t kLeastDisaggRequestId = std::int64_t{1} << 40;

const json* field(const json& body, const char* key) {
  if (!body.is_object()) return nullptr;
  const auto found = body.find(key);
  return found == body.end() || found->is_null() ? nullptr : &*found;
}

bool is_true(const json& object, const char* key) {
  const json* value = field(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

std::optional<std::uint16_t> port_of(const json* value) {
  if (value == nullptr || !value->is_number_unsigned() || *value == 0 || *value > 65535) {
    return std::nullopt;
  }
  return value->get<std::uint16_t>();
}

// One room per choice: lists are taken as they are, a scalar counts on from choice to choice.
Result<std::vector<std::int64_t>> read_rooms(const json& rooms, std::size_t choices) {
  std::vector<std::int64_t> out;
  if (rooms.is_array()) {
    for (const json& room : rooms)
      out.push_back(room.is_number_integer() ? room.get<std::int64_t>() : -1);
  } else if (rooms.is_number_integer() && rooms <= std::numeric_limits<std::int64_t>::max() -
                                                       static_cast<std::int64_t>(choices - 1)) {
    for (std::size_t i = 0; i < choices; ++i) {
      out.push_back(rooms.get<std::int64_t>() + static_cast<std::int64_t>(i));
    }
  }
  if (out.size() != choices || std::ranges::any_of(out, [](std::int64_t r) { return r < 0; })) {
    return fail(Errc::InvalidRequest,
                "bootstrap_room: must be an integer from 0 to 2^63-1, or one per choice");
  }
  return out;
}

const json& of_prompt(const json& value, std::size_t index) {
  return value.is_array() && index < value.size() ? value[index] : value;
}

std::size_t count_prompts(const json& body) {
  const json* prompt = field(body, "prompt");
  const bool list =
      prompt != nullptr && prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  return list ? prompt->size() : 1;
}

// As far as the hand-off needs it; a wrong `n` is refused where it is read for good.
std::size_t count_samples(const json& body) {
  const json* n = field(body, "n");
  const bool usable = n != nullptr && n->is_number_unsigned() && *n >= 1 && *n <= 128;
  return usable ? n->get<std::size_t>() : 1;
}

Result<void> read_generation_only(const json& params, const json& body, GenerationRequest& out) {
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

}  // namespace

Phase phase_of(Engine engine, Role role, const json& body) {
  switch (engine) {
    case Engine::Vllm: {
      const json* params = field(body, "kv_transfer_params");
      if (params == nullptr) return Phase::Aggregated;
      if (is_true(*params, "do_remote_decode")) return Phase::Prefill;
      return is_true(*params, "do_remote_prefill") ? Phase::Decode : Phase::Aggregated;
    }
    case Engine::Sglang:
      // Both legs get the same body; only the worker's role tells them apart.
      if (field(body, "bootstrap_room") == nullptr || role == Role::Aggregated) {
        return Phase::Aggregated;
      }
      return role == Role::Prefill ? Phase::Prefill : Phase::Decode;
    case Engine::Trtllm: {
      const json* params = field(body, "disaggregated_params");
      const json* type = params == nullptr ? nullptr : field(*params, "request_type");
      if (type == nullptr) return Phase::Aggregated;
      if (*type == "context_only") return Phase::Prefill;
      return *type == "generation_only" ? Phase::Decode : Phase::Aggregated;
    }
  }
  return Phase::Aggregated;
}

Result<void> read_vllm_handoff(const Options& options, const json& body, GenerationRequest& out) {
  const json* params = field(body, "kv_transfer_params");
  if (params == nullptr) return {};
  if (!params->is_object()) {
    return fail(Errc::InvalidRequest, "kv_transfer_params: must be an object");
  }
  // A server without a connector does not look at them.
  if (options.role == Role::Aggregated) return {};
  const Phase phase = phase_of(options.engine, options.role, body);
  if (phase == Phase::Prefill && options.role == Role::Prefill) out.phase = phase;
  if (phase != Phase::Decode || options.role != Role::Decode) return {};

  const json* host = field(*params, "remote_host");
  const auto port = port_of(field(*params, "remote_port"));
  const json* engine_id = field(*params, "remote_engine_id");
  const json* request_id = field(*params, "remote_request_id");
  const json* block_ids = field(*params, "remote_block_ids");
  if (host == nullptr || !host->is_string() || !port || engine_id == nullptr ||
      !engine_id->is_string() || request_id == nullptr || !request_id->is_string() ||
      block_ids == nullptr || !block_ids->is_array()) {
    out.recompute = true;
    return {};
  }
  HandoffSource source{.host = host->get<std::string>(),
                       .port = *port,
                       .engine_id = engine_id->get<std::string>(),
                       .key = request_id->get<std::string>(),
                       .blocks = {}};
  for (const json& group : *block_ids) {
    for (const json& block : group) {
      if (block.is_number_unsigned()) source.blocks.push_back(block.get<std::uint32_t>());
    }
  }
  out.phase = phase;
  out.sources.assign(count_prompts(body), source);
  return {};
}

Result<void> read_sglang_handoff(const Options& options, const json& body, GenerationRequest& out) {
  if (options.role == Role::Aggregated) return {};
  const json* room = field(body, "bootstrap_room");
  if (room == nullptr) {
    return fail(Errc::InvalidRequest, "Disaggregated request received without bootstrap room id.");
  }
  const std::size_t samples = count_samples(body);
  const auto rooms = read_rooms(*room, count_prompts(body) * samples);
  if (!rooms) return fail(rooms.error());
  out.phase = options.role == Role::Prefill ? Phase::Prefill : Phase::Decode;
  if (out.phase == Phase::Prefill) {
    for (const std::int64_t one : *rooms) {
      out.rooms.push_back({.key = fmt::format("room-{}", one),
                           .rank = static_cast<std::uint32_t>(one % options.dp_size)});
    }
    return {};
  }
  const json* host = field(body, "bootstrap_host");
  const json* port = field(body, "bootstrap_port");
  for (std::size_t i = 0; i < rooms->size(); ++i) {
    const json* one_host = host == nullptr ? nullptr : &of_prompt(*host, i / samples);
    const auto one_port = port_of(port == nullptr ? nullptr : &of_prompt(*port, i / samples));
    if (one_host == nullptr || !one_host->is_string() || !one_port) {
      return fail(Errc::InvalidRequest, "bootstrap_host and bootstrap_port are required");
    }
    out.sources.push_back({.host = one_host->get<std::string>(),
                           .port = *one_port,
                           .engine_id = {},
                           .key = fmt::format("room-{}", (*rooms)[i]),
                           .blocks = {},
                           .wait_for_prefill = true});
  }
  return {};
}

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
  if (out.phase == Phase::Prefill) {
    if (is_true(body, "stream")) {
      return fail(Errc::InvalidRequest, "a context_only request cannot be streamed");
    }
    return {};
  }
  return read_generation_only(*params, body, out);
}

std::string encode_opaque_state(const HandoffSource& source) {
  const std::string plain = json{
      {"host", source.host},
      {"port", source.port},
      {"engine_id", source.engine_id},
      {"key", source.key},
      {"blocks", source.blocks}}.dump();
  return encode_base64(plain);
}

Result<HandoffSource> decode_opaque_state(const std::string& text) {
  const json state = json::parse(decode_base64(text), nullptr, false);
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
