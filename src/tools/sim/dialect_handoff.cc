// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Which leg a body is, and SGLang's hand-off fields.
#include "tools/sim/dialect.h"
#include "tools/sim/dialect_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace baton::sim {
namespace {

using model::Engine;
using model::Role;
using nlohmann::json;

constexpr std::uint16_t kDefaultBootstrapPort = 8998;

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

Result<void> read_sglang_handoff(const Options& options, const json& body, GenerationRequest& out) {
  if (options.role == Role::Aggregated) return {};
  out.phase = options.role == Role::Prefill ? Phase::Prefill : Phase::Decode;
  const json* room = field(body, "bootstrap_room");
  if (room == nullptr) {
    out.late_refusal = fmt::format(
        "Invalid request: Disaggregated request received without bootstrap room id. req.rid='{}'",
        out.id);
    return {};
  }
  const std::size_t samples = count_samples(body);
  if (room->is_array() && room->size() < count_prompts(body)) {
    return fail(Errc::Internal, "Internal server error: list index out of range");
  }
  const auto rooms = read_rooms(*room, count_prompts(body) * samples);
  if (!rooms) return fail(rooms.error());
  if (out.phase == Phase::Prefill) {
    for (const std::int64_t one : *rooms) {
      out.meetings.push_back({.key = fmt::format("room-{}", one),
                              .rank = static_cast<std::uint32_t>(one % options.dp_size)});
    }
    return {};
  }
  const json* host = field(body, "bootstrap_host");
  const json* port = field(body, "bootstrap_port");
  for (std::size_t i = 0; i < rooms->size(); ++i) {
    const json* one_host = host == nullptr ? nullptr : &of_prompt(*host, i / samples);
    const json* named = port == nullptr ? nullptr : &of_prompt(*port, i / samples);
    // Without one the worker takes that of its own configuration.
    const auto one_port = named == nullptr || named->is_null()
                              ? std::optional(kDefaultBootstrapPort)
                              : port_of(named);
    if (one_host == nullptr || !one_host->is_string() || !one_port) {
      return fail(Errc::InvalidRequest,
                  "bootstrap_host is required, and a bootstrap_port is a port");
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

}  // namespace baton::sim
