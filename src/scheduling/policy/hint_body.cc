// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/hint_body.h"

#include "wire/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace baton::scheduling {
namespace {

constexpr double kMaxWeight = 1e6;
constexpr double kMaxScale = 1000;  // as in the configuration

std::unexpected<Error> invalid(std::string_view field, std::string_view what) {
  return fail(Errc::InvalidRouting, fmt::format("nvext.{} {}", field, what));
}

// Calls `take(element)` for each element of an array until one fails. Requires: `array` is a valid
// JSON array.
template <class Take>
Result<void> for_each_element(std::string_view array, Take take) {
  std::size_t at = wire::skip_space(array, 1);
  while (array[at] != ']') {
    const std::size_t end = wire::skip_value(array, at);
    if (auto taken = take(array.substr(at, end - at)); !taken) return taken;
    at = wire::skip_space(array, end);
    if (array[at] == ',') at = wire::skip_space(array, at + 1);
  }
  return {};
}

// The same for the members of an object: `take(key, value)`.
template <class Take>
Result<void> for_each_member(std::string_view object, Take take) {
  std::size_t at = wire::skip_space(object, 1);
  while (object[at] != '}') {
    const std::size_t key_end = wire::skip_value(object, at);
    const std::string key = wire::unescape(object.substr(at + 1, key_end - at - 2));
    const std::size_t value = wire::skip_space(object, wire::skip_space(object, key_end) + 1);
    const std::size_t end = wire::skip_value(object, value);
    if (auto taken = take(key, object.substr(value, end - value)); !taken) return taken;
    at = wire::skip_space(object, end);
    if (object[at] == ',') at = wire::skip_space(object, at + 1);
  }
  return {};
}

// A string, or the digits of a whole number: both name a worker.
Result<std::string> read_id(std::string_view json, std::string_view field) {
  std::string id;
  if (json.starts_with('"')) {
    // Escapes only make it shorter: six bytes for one, at most.
    if (json.size() > 6 * kMaxIdBytes + 2) return invalid(field, "is longer than 256 bytes");
    id = wire::unescape(json.substr(1, json.size() - 2));
  } else if (std::ranges::all_of(json, [](char c) { return c >= '0' && c <= '9'; })) {
    id = json;
  } else {
    return invalid(field, "must be a string or a whole number");
  }
  if (id.empty()) return invalid(field, "must not be empty");
  if (id.size() > kMaxIdBytes) return invalid(field, "is longer than 256 bytes");
  return id;
}

Result<std::vector<std::string>> read_ids(std::string_view json, std::string_view field) {
  if (!json.starts_with('[')) return invalid(field, "must be a list");
  std::vector<std::string> ids;
  auto read = for_each_element(json, [&](std::string_view element) -> Result<void> {
    if (ids.size() == kMaxIds) return invalid(field, "has more than 1024 entries");
    auto id = read_id(element, field);
    if (!id) return fail(std::move(id.error()));
    ids.push_back(*std::move(id));
    return {};
  });
  if (!read) return fail(std::move(read.error()));
  return ids;
}

// Nothing if it is no number, or outside these bounds.
std::optional<double> read_number(std::string_view json, double least, double most) {
  double number = 0;
  const char* const end = json.data() + json.size();
  const auto [stop, error] = std::from_chars(json.data(), end, number);
  if (stop != end || error != std::errc{} || number < least || number > most) return std::nullopt;
  return number;
}

Result<double> read_weight(std::string_view json, std::string_view field) {
  const auto weight = read_number(json, -kMaxWeight, kMaxWeight);
  if (!weight) return invalid(field, "must map taints to numbers from -1000000 to 1000000");
  return *weight;
}

Result<double> read_scale(std::string_view json, std::string_view field) {
  const auto scale = read_number(json, 0, kMaxScale);
  if (!scale) return invalid(field, "must be a number from 0 to 1000");
  return *scale;
}

Result<double> read_share(std::string_view json, std::string_view field) {
  const auto share = read_number(json, 0, 1);
  if (!share) return invalid(field, "must be a number from 0 to 1");
  return *share;
}

Result<bool> read_boolean(std::string_view json, std::string_view field) {
  if (json != "true" && json != "false") return invalid(field, "must be true or false");
  return json == "true";
}

Result<std::vector<std::pair<std::string, double>>> read_weights(std::string_view json,
                                                                 std::string_view field) {
  if (!json.starts_with('{')) return invalid(field, "must map taints to numbers");
  std::vector<std::pair<std::string, double>> weights;
  auto read =
      for_each_member(json, [&](const std::string& taint, std::string_view value) -> Result<void> {
        if (taint.size() > kMaxIdBytes) return invalid(field, "has a taint longer than 256 bytes");
        auto weight = read_weight(value, field);
        if (!weight) return fail(std::move(weight.error()));
        const auto known =
            std::ranges::find(weights, taint, &std::pair<std::string, double>::first);
        if (known != weights.end()) {
          known->second = *weight;  // of repeated keys the last one counts
        } else if (weights.size() == kMaxIds) {
          return invalid(field, "has more than 1024 entries");
        } else {
          weights.emplace_back(taint, *weight);
        }
        return {};
      });
  if (!read) return fail(std::move(read.error()));
  return weights;
}

// Reads a field with `read` if it is present and not null.
template <class Target, class Read>
Result<void> read_field(const wire::JsonObject& object, std::string_view prefix,
                        std::string_view name, Target& target, Read read) {
  const auto json = object.find(name);
  if (!json || *json == "null") return {};
  auto value = read(*json, fmt::format("{}{}", prefix, name));
  if (!value) return fail(std::move(value.error()));
  target = *std::move(value);
  return {};
}

Result<std::optional<std::uint32_t>> read_rank(std::string_view json, std::string_view field) {
  auto text = read_id(json, field);
  if (!text) return fail(std::move(text.error()));
  return parse_rank(*text, fmt::format("nvext.{}", field));
}

// A route query: the word itself, or with a value after a colon.
bool is_query(std::string_view annotation) {
  constexpr std::string_view kQuery = "query_instance_id";
  return annotation.starts_with(kQuery) &&
         (annotation.size() == kQuery.size() || annotation[kQuery.size()] == ':');
}

// Others are not ours to understand, and none of a client's may switch remote prefill off.
Result<bool> read_annotations(std::string_view json, std::string_view field) {
  if (!json.starts_with('[')) return invalid(field, "must be a list");
  bool query = false;
  auto read = for_each_element(json, [&query](std::string_view element) -> Result<void> {
    constexpr std::size_t kLongest = 4096;
    if (element.starts_with('"') && element.size() < kLongest) {
      query = query || is_query(wire::unescape(element.substr(1, element.size() - 2)));
    }
    return {};
  });
  if (!read) return fail(std::move(read.error()));
  return query;
}

Result<Constraints> read_constraints(std::string_view json, std::string_view field) {
  const auto object = wire::JsonObject::within(json);
  if (!object) return invalid(field, "must be an object");
  const std::string prefix = fmt::format("{}.", field);
  Constraints constraints;
  auto read = read_field(*object, prefix, "required_taints", constraints.required, read_ids);
  if (read) {
    read = read_field(*object, prefix, "preferred_taints", constraints.preferred, read_weights);
  }
  if (!read) return fail(std::move(read.error()));
  return constraints;
}

// Overwrites earlier values: of two such objects the second counts.
Result<void> read_override(const wire::JsonObject& nvext, std::string_view name,
                           CostOverride& cost) {
  const auto json = nvext.find(name);
  if (!json || *json == "null") return {};
  const auto object = wire::JsonObject::within(*json);
  if (!object) return invalid(name, "must be an object");
  const auto read = [&, prefix = fmt::format("{}.", name)](std::string_view field, auto& target,
                                                           auto reader) {
    return read_field(*object, prefix, field, target, reader);
  };
  Result<void> done = read("overlap_score_credit", cost.overlap_score_credit, read_scale);
  if (done) done = read("prefill_load_scale", cost.prefill_load_scale, read_scale);
  if (done) done = read("router_temperature", cost.temperature, read_scale);
  if (done) done = read("assume_kv_reuse", cost.assume_kv_reuse, read_boolean);
  if (done) done = read("track_prefill_tokens", cost.track_prefill_tokens, read_boolean);
  if (done) done = read("shared_cache_multiplier", cost.shared_cache_multiplier, read_share);
  return done;
}

template <class Integer>
Result<Integer> read_integer(std::string_view json, std::string_view field) {
  Integer number = 0;
  const char* const end = json.data() + json.size();
  const auto [stop, error] = std::from_chars(json.data(), end, number);
  if (stop == end && error == std::errc{}) return number;
  return invalid(
      field, fmt::format("must be a whole number from {} to {}",
                         std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()));
}

Result<void> read_agent_hints(const wire::JsonObject& nvext, BodyHints& hints) {
  constexpr std::string_view kName = "agent_hints";
  const auto json = nvext.find(kName);
  if (!json || *json == "null") return {};
  const auto object = wire::JsonObject::within(*json);
  if (!object) return invalid(kName, "must be an object");
  const auto read = [&](std::string_view field, auto& target, auto reader) {
    return read_field(*object, "agent_hints.", field, target, reader);
  };
  Result<void> done = read("priority", hints.priority, read_integer<std::int32_t>);
  if (done) done = read("strict_priority", hints.strict_priority, read_integer<std::uint32_t>);
  if (done) done = read("osl", hints.expected_output, read_integer<std::uint32_t>);
  return done;
}

}  // namespace

Result<std::optional<std::uint32_t>> parse_rank(std::string_view text, std::string_view source) {
  constexpr std::uint32_t kUnset = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t rank = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, rank);
  if (text.empty() || stop != end || error != std::errc{}) {
    return fail(Errc::InvalidRouting,
                fmt::format("{} must be the number of a data-parallel rank", source));
  }
  if (rank == kUnset) return std::nullopt;
  return rank;
}

Result<BodyHints> read_body_hints(const wire::JsonObject& body) {
  BodyHints hints;
  const auto json = body.find("nvext");
  if (!json || *json == "null") return hints;
  const auto nvext = wire::JsonObject::within(*json);
  if (!nvext) return fail(Errc::InvalidRouting, "nvext must be an object");

  const auto read = [&](std::string_view name, auto& target, auto reader) {
    return read_field(*nvext, "", name, target, reader);
  };
  Result<void> done = read("backend_instance_id", hints.backend_worker, read_id);
  if (done) done = read("prefill_worker_id", hints.prefill_worker, read_id);
  if (done) done = read("decode_worker_id", hints.decode_worker, read_id);
  if (done) done = read("dp_rank", hints.rank, read_rank);
  if (done) done = read("prefill_dp_rank", hints.prefill_rank, read_rank);
  if (done) done = read("allowed_worker_ids", hints.allowed, read_ids);
  if (done) done = read("routing_constraints", hints.constraints, read_constraints);
  if (done) done = read("annotations", hints.query_only, read_annotations);
  if (done) done = read_override(*nvext, "router_config_override", hints.cost);
  if (done) done = read_override(*nvext, "router", hints.cost);
  if (done) done = read_agent_hints(*nvext, hints);
  if (!done) return fail(std::move(done.error()));
  return hints;
}

}  // namespace baton::scheduling
