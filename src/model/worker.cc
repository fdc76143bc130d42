// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace baton::model {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<Engine, 3> kEngines{
    {{Engine::Vllm, "vllm"}, {Engine::Sglang, "sglang"}, {Engine::Trtllm, "trtllm"}}};
constexpr Names<Role, 3> kRoles{
    {{Role::Prefill, "prefill"}, {Role::Decode, "decode"}, {Role::Aggregated, "aggregated"}}};
constexpr Names<HandoffMode, 6> kModes{{{HandoffMode::NixlPull, "nixl_pull"},
                                        {HandoffMode::NixlPush, "nixl_push"},
                                        {HandoffMode::Mooncake, "mooncake"},
                                        {HandoffMode::Bootstrap, "bootstrap"},
                                        {HandoffMode::ContextFirst, "context_first"},
                                        {HandoffMode::GenerationFirst, "generation_first"}}};
constexpr Names<Disaggregation, 3> kDisaggregations{{{Disaggregation::Auto, "auto"},
                                                     {Disaggregation::Required, "required"},
                                                     {Disaggregation::Off, "off"}}};
constexpr Names<OnPrefillFailure, 3> kOnPrefillFailures{{{OnPrefillFailure::Retry, "retry"},
                                                         {OnPrefillFailure::Fallback, "fallback"},
                                                         {OnPrefillFailure::Fail, "fail"}}};
constexpr Names<Enforcement, 2> kEnforcements{
    {{Enforcement::Required, "required"}, {Enforcement::Preferred, "preferred"}}};

template <class Enum, std::size_t N>
std::string_view name_of(const Names<Enum, N>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "unknown";
}

template <class Enum, std::size_t N>
std::optional<Enum> value_of(const Names<Enum, N>& names, std::string_view text) {
  for (const auto& [value, name] : names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Engine engine) { return name_of(kEngines, engine); }
std::string_view to_string(Role role) { return name_of(kRoles, role); }
std::string_view to_string(Policy policy) {
  const auto index = static_cast<std::size_t>(policy);
  return index < kPolicyNames.size() ? kPolicyNames[index] : "unknown";
}
std::optional<Engine> parse_engine(std::string_view text) { return value_of(kEngines, text); }
std::optional<Role> parse_role(std::string_view text) { return value_of(kRoles, text); }
std::string_view to_string(HandoffMode mode) { return name_of(kModes, mode); }
std::string_view to_string(Disaggregation disaggregation) {
  return name_of(kDisaggregations, disaggregation);
}
std::optional<Policy> parse_policy(std::string_view text) {
  const auto* const found = std::ranges::find(kPolicyNames, text);
  if (found == kPolicyNames.end()) return std::nullopt;
  return static_cast<Policy>(found - kPolicyNames.begin());
}
std::optional<HandoffMode> parse_handoff_mode(std::string_view text) {
  return value_of(kModes, text);
}
std::optional<Disaggregation> parse_disaggregation(std::string_view text) {
  return value_of(kDisaggregations, text);
}
std::optional<OnPrefillFailure> parse_on_prefill_failure(std::string_view text) {
  return value_of(kOnPrefillFailures, text);
}
std::optional<Enforcement> parse_enforcement(std::string_view text) {
  return value_of(kEnforcements, text);
}

Engine engine_of(HandoffMode mode) {
  switch (mode) {
    case HandoffMode::NixlPull:
    case HandoffMode::NixlPush:
    case HandoffMode::Mooncake:
      return Engine::Vllm;
    case HandoffMode::Bootstrap:
      return Engine::Sglang;
    case HandoffMode::ContextFirst:
    case HandoffMode::GenerationFirst:
      break;
  }
  return Engine::Trtllm;
}

HandoffMode default_mode(Engine engine) {
  switch (engine) {
    case Engine::Vllm:
      return HandoffMode::NixlPull;
    case Engine::Sglang:
      return HandoffMode::Bootstrap;
    case Engine::Trtllm:
      break;
  }
  return HandoffMode::ContextFirst;
}

std::string Endpoint::to_string() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace baton::model
