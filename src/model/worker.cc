// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/worker.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace baton::model {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<Engine, 3> kEngines{
    {{Engine::Vllm, "vllm"}, {Engine::Sglang, "sglang"}, {Engine::Trtllm, "trtllm"}}};
constexpr Names<Role, 3> kRoles{
    {{Role::Prefill, "prefill"}, {Role::Decode, "decode"}, {Role::Aggregated, "aggregated"}}};
constexpr Names<Policy, 4> kPolicies{{{Policy::RoundRobin, "round_robin"},
                                      {Policy::Random, "random"},
                                      {Policy::PowerOfTwo, "power_of_two"},
                                      {Policy::LeastLoaded, "least_loaded"}}};

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
std::string_view to_string(Policy policy) { return name_of(kPolicies, policy); }
std::optional<Engine> parse_engine(std::string_view text) { return value_of(kEngines, text); }
std::optional<Role> parse_role(std::string_view text) { return value_of(kRoles, text); }
std::optional<Policy> parse_policy(std::string_view text) { return value_of(kPolicies, text); }

std::string Endpoint::to_string() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace baton::model
