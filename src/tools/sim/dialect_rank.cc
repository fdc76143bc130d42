// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Which data-parallel rank a request asks for.
#include "tools/sim/dialect.h"
#include "tools/sim/sglang_body.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>
#include <optional>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// SGLang: the header goes before the body, the body's newer name before the older one.
Result<std::optional<std::int64_t>> sglang_rank(std::string_view header, const json& body) {
  if (!header.empty()) {
    const auto number = number_in(header);
    if (!number) {
      return fail(sglang_refusal(
          fmt::format("Invalid X-Data-Parallel-Rank header: must be an integer, got '{}'", header),
          "400"));
    }
    return number;
  }
  for (const char* name : {"routed_dp_rank", "data_parallel_rank"}) {
    const auto found = body.find(name);
    if (found == body.end() || found->is_null()) continue;
    if (!found->is_number_integer()) continue;  // the newer one was looked at
    return std::optional(found->get<std::int64_t>());
  }
  return std::optional<std::int64_t>();
}

}  // namespace

Result<void> read_rank(const Options& options, std::string_view header, const json& body,
                       GenerationRequest& out) {
  std::optional<std::int64_t> asked;
  if (options.engine == Engine::Vllm) asked = number_in(header);
  if (options.engine == Engine::Sglang) {
    const auto found = sglang_rank(header, body);
    if (!found) return fail(found.error());
    asked = *found;
  }
  if (!asked) return {};
  if (*asked < 0 || *asked >= options.dp_size) {
    constexpr std::string_view kVllm = "data_parallel_rank {} is out of range [0, {}).";
    constexpr std::string_view kSglang = "routed_dp_rank={} out of range [0, {})";
    return fail(Errc::InvalidRequest,
                fmt::format(fmt::runtime(options.engine == Engine::Vllm ? kVllm : kSglang), *asked,
                            options.dp_size));
  }
  // A prefill worker's rank follows the room; one asked for by name must agree with it.
  for (const Meeting& room : out.meetings) {
    if (!room.rank || *room.rank == *asked) continue;
    return fail(Errc::InvalidRequest,
                fmt::format("routed_dp_rank {} conflicts with bootstrap_room, which belongs to "
                            "rank {}",
                            *asked, *room.rank));
  }
  out.rank = static_cast<std::uint32_t>(*asked);
  return {};
}

}  // namespace baton::sim
