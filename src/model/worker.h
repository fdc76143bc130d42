// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::model {

enum class Engine { Vllm, Sglang, Trtllm };
enum class Role { Prefill, Decode, Aggregated };
enum class Policy { RoundRobin, Random, PowerOfTwo, LeastLoaded };

std::string_view to_string(Engine engine);
std::string_view to_string(Role role);
std::string_view to_string(Policy policy);
std::optional<Engine> parse_engine(std::string_view text);
std::optional<Role> parse_role(std::string_view text);
std::optional<Policy> parse_policy(std::string_view text);

struct Endpoint {
  std::string host;  // name or address, an IPv6 address without brackets
  std::uint16_t port = 0;
  // host:port, with brackets around an IPv6 address.
  std::string to_string() const;
  bool operator==(const Endpoint&) const = default;
};

// Names a worker for the life of the process; never used again for another one.
struct WorkerId {
  std::uint64_t value = 0;
  auto operator<=>(const WorkerId&) const = default;
};

// What an operator says of one engine server.
struct WorkerSpec {
  Endpoint endpoint;
  Engine engine = Engine::Vllm;
  Role role = Role::Aggregated;
  // SGLang prefill workers: where decode workers meet them. Asked of the engine where absent.
  std::optional<std::uint16_t> bootstrap_port;
  bool operator==(const WorkerSpec&) const = default;
};

}  // namespace baton::model
