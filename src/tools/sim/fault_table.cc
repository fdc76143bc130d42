// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/fault_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kHealth = "health";

constexpr std::array<std::pair<FaultKind, std::string_view>, 21> kKinds{{
    {FaultKind::Refuse, "refuse"},
    {FaultKind::Reset, "reset"},
    {FaultKind::Status, "status"},
    {FaultKind::Hang, "hang"},
    {FaultKind::HangStream, "hang_stream"},
    {FaultKind::Cut, "cut"},
    {FaultKind::Slow, "slow"},
    {FaultKind::Malformed, "malformed"},
    {FaultKind::ErrorEvent, "error_event"},
    {FaultKind::Die, "die"},
    {FaultKind::SlowSteps, "slow_steps"},
    {FaultKind::KvSilence, "kv_silence"},
    {FaultKind::KvDrop, "kv_drop"},
    {FaultKind::KvLose, "kv_lose"},
    {FaultKind::KvDelay, "kv_delay"},
    {FaultKind::KvGarbage, "kv_garbage"},
    {FaultKind::KvDuplicate, "kv_duplicate"},
    {FaultKind::KvDuplicateStores, "kv_duplicate_stores"},
    {FaultKind::KvLie, "kv_lie"},
    {FaultKind::KvScramble, "kv_scramble"},
    {FaultKind::KvRestart, "kv_restart"},
}};

Result<double> read_number(const json& body, const char* key, double least) {
  const json& value = body[key];
  if (!value.is_number() || value.get<double>() < least) {
    return fail(Errc::InvalidRequest,
                fmt::format("{}: must be a number of at least {}", key, least));
  }
  return value.get<double>();
}

Result<void> read_phase(const json& body, Fault& fault) {
  if (!body.contains("phase") || body["phase"] == "any") return {};
  if (!strikes_requests(fault.kind)) {
    return fail(Errc::InvalidRequest, "phase: steps and KV events have none; leave it out");
  }
  if (body["phase"] == kHealth) {
    const FaultKind kind = fault.kind;
    fault.health = true;
    if (kind == FaultKind::Reset || kind == FaultKind::Status || kind == FaultKind::Hang ||
        kind == FaultKind::Slow) {
      return {};
    }
    return fail(Errc::InvalidRequest, "phase: health takes reset, status, hang or slow");
  }
  for (const Phase phase : {Phase::Prefill, Phase::Decode, Phase::Aggregated}) {
    if (body["phase"] != to_string(phase)) continue;
    fault.phase = phase;
    return {};
  }
  return fail(Errc::InvalidRequest, "phase: must be prefill, decode, aggregated, any or health");
}

Result<void> read_match(const json& value, Fault& fault) {
  const bool of_requests =
      !fault.health && strikes_requests(fault.kind) && fault.kind != FaultKind::Refuse;
  if (!of_requests) return fail(Errc::InvalidRequest, "match: only faults of requests have one");
  if (!value.is_string()) return fail(Errc::InvalidRequest, "match: must be a text");
  fault.match = value.get<std::string>();
  return {};
}

Result<void> check_factor(const json& body, FaultKind kind) {
  if (body.contains("factor") == (kind == FaultKind::SlowSteps)) return {};
  return fail(Errc::InvalidRequest,
              kind == FaultKind::SlowSteps
                  ? "factor: say how many times as long a step of slow_steps lasts"
                  : "factor: only slow_steps has one");
}

std::string phase_name(const Fault& fault) {
  if (fault.health) return std::string(kHealth);
  return fault.phase ? std::string(to_string(*fault.phase)) : "any";
}

Result<FaultKind> read_kind(const json& body) {
  for (const auto& [kind, name] : kKinds) {
    if (body.contains("kind") && body["kind"] == name) return kind;
  }
  std::string names;
  for (const auto& [kind, name] : kKinds)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return fail(Errc::InvalidRequest, fmt::format("kind: must be one of {}", names));
}

}  // namespace

std::string_view to_string(FaultKind kind) {
  return std::ranges::find(kKinds, kind, [](const auto& row) { return row.first; })->second;
}

Result<Fault> read_fault(const json& body) {
  if (!body.is_object()) return fail(Errc::InvalidRequest, "the body must be a JSON object");
  Fault fault;
  const auto kind = read_kind(body);
  if (!kind) return fail(kind.error());
  fault.kind = *kind;
  if (const auto phase = read_phase(body, fault); !phase) return fail(phase.error());
  if (const auto factor = check_factor(body, fault.kind); !factor) return fail(factor.error());
  for (const auto& [key, value] : body.items()) {
    if (key == "kind" || key == "phase") continue;
    if (key == "match") {
      if (auto read = read_match(value, fault); !read) return fail(read.error());
      continue;
    }
    const auto number = read_number(body, key.c_str(), key == "status" ? 100 : 0);
    if (!number) return fail(number.error());
    if (key == "count") {
      fault.count = static_cast<std::uint64_t>(*number);
    } else if (key == "status") {
      fault.status = static_cast<int>(*number);
    } else if (key == "after_tokens") {
      fault.after_tokens = static_cast<std::uint64_t>(*number);
    } else if (key == "delay_ms") {
      fault.delay_ms = *number;
    } else if (key == "factor") {
      fault.factor = *number;
    } else if (key == "for_ms") {
      fault.for_ms = *number;
    } else {
      return fail(Errc::InvalidRequest, fmt::format("{}: no such field", key));
    }
  }
  if (fault.status > 599) return fail(Errc::InvalidRequest, "status: must be at most 599");
  return fault;
}

void FaultTable::add(const Fault& fault, TimePoint now) {
  std::optional<TimePoint> until;
  if (fault.for_ms) {
    until = now + std::chrono::microseconds(static_cast<std::int64_t>(*fault.for_ms * 1000));
  }
  active_.push_back({fault, until});
}

template <typename Matches>
std::optional<Fault> FaultTable::take_first(TimePoint now, Matches matches) {
  drop_finished(now);
  for (Active& active : active_) {
    Fault& fault = active.fault;
    if (fault.kind == FaultKind::Refuse || !matches(fault)) continue;
    if (fault.count) --*fault.count;
    return fault;
  }
  return std::nullopt;
}

std::optional<Fault> FaultTable::strike(Phase phase, TimePoint now, std::string_view body) {
  return take_first(now, [phase, body](const Fault& fault) {
    return !fault.health && strikes_requests(fault.kind) &&
           (!fault.phase || *fault.phase == phase) && body.find(fault.match) != body.npos;
  });
}

std::optional<Fault> FaultTable::strike_health(TimePoint now) {
  return take_first(now, [](const Fault& fault) { return fault.health; });
}

std::optional<Fault> FaultTable::strike_kv(TimePoint now) {
  return take_first(now, [](const Fault& fault) { return strikes_kv(fault.kind); });
}

double FaultTable::step_factor(TimePoint now) {
  const auto fault =
      take_first(now, [](const Fault& active) { return active.kind == FaultKind::SlowSteps; });
  return fault ? fault->factor : 1;
}

bool FaultTable::refusing(TimePoint now) {
  drop_finished(now);
  return std::ranges::any_of(
      active_, [](const Active& active) { return active.fault.kind == FaultKind::Refuse; });
}

json FaultTable::list(TimePoint now) {
  drop_finished(now);
  json out = json::array();
  for (const auto& [fault, until] : active_) {
    json one{{"kind", to_string(fault.kind)},
             {"phase", phase_name(fault)},
             {"status", fault.status},
             {"after_tokens", fault.after_tokens},
             {"delay_ms", fault.delay_ms}};
    if (fault.count) one["count"] = *fault.count;
    if (fault.kind == FaultKind::SlowSteps) one["factor"] = fault.factor;
    if (fault.for_ms) one["for_ms"] = *fault.for_ms;
    if (!fault.match.empty()) one["match"] = fault.match;
    out.push_back(std::move(one));
  }
  return out;
}

void FaultTable::drop_finished(TimePoint now) {
  std::erase_if(active_, [now](const Active& active) {
    return (active.until && *active.until <= now) ||
           (active.fault.count && *active.fault.count == 0);
  });
}

}  // namespace baton::sim
