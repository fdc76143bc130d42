// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::model {

enum class Engine { Vllm, Sglang, Trtllm };
enum class Role { Prefill, Decode, Aggregated };
// Direct: the client names the workers. The last three weigh the prompt: Kv by the reference's
// formula, LoadAware by the same without caches, Ttft by the time to the first token.
enum class Policy { RoundRobin, Random, PowerOfTwo, LeastLoaded, Direct, Kv, LoadAware, Ttft };
// As configurations name them, in the order of the enumeration.
inline constexpr std::array<std::string_view, 8> kPolicyNames{
    "round_robin", "random", "power_of_two", "least_loaded", "direct", "kv", "load_aware", "ttft"};
// How a prompt's KV cache gets from a prefill to a decode worker.
enum class HandoffMode {
  NixlPull,         // vLLM: decode reads what the prefill's answer names
  NixlPush,         // vLLM: prefill writes into a decode that waits for it
  Mooncake,         // vLLM: both meet at the prefill worker's bootstrap server
  Bootstrap,        // SGLang: both meet in a room of the prefill worker's bootstrap server
  ContextFirst,     // TensorRT-LLM: decode reads what the context answer names
  GenerationFirst,  // TensorRT-LLM: generation waits for a context that runs beside it
};
// Whether a model's prefill runs on workers of its own.
enum class Disaggregation { Auto, Required, Off };
// Reaction when no further prefill worker is to be tried (Fail: the first failure is final).
enum class OnPrefillFailure { Retry, Fallback, Fail };
// Whether a transfer domain is a condition or a preference.
enum class Enforcement { Required, Preferred };

std::string_view to_string(Engine engine);
std::string_view to_string(Role role);
std::string_view to_string(Policy policy);
std::string_view to_string(HandoffMode mode);
std::string_view to_string(Disaggregation disaggregation);
std::optional<Engine> parse_engine(std::string_view text);
std::optional<Role> parse_role(std::string_view text);
std::optional<Policy> parse_policy(std::string_view text);
std::optional<HandoffMode> parse_handoff_mode(std::string_view text);
std::optional<Disaggregation> parse_disaggregation(std::string_view text);
std::optional<OnPrefillFailure> parse_on_prefill_failure(std::string_view text);
std::optional<Enforcement> parse_enforcement(std::string_view text);

Engine engine_of(HandoffMode mode);
// The engine's hand-off mode if none is configured.
HandoffMode default_mode(Engine engine);

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

// A place in the network that KV caches should not leave, or only reluctantly.
struct TransferDomain {
  std::string name;   // e.g. rack
  std::string value;  // e.g. r7: where this worker is
  Enforcement enforcement = Enforcement::Required;
  double weight = 0;  // Preferred: how much nearness counts
  bool operator==(const TransferDomain&) const = default;
};

// vLLM NIXL push: how a decode worker finds a prefill worker before it has answered. Learned from
// the worker where not given.
struct NixlPeer {
  std::string engine_id;
  Endpoint side_channel;
  std::uint32_t tensor_parallel_size = 1;
  std::uint32_t pipeline_parallel_size = 1;
  bool operator==(const NixlPeer&) const = default;
};

// The sockets on which an engine publishes the events of its KV cache.
struct KvFeed {
  // ZeroMQ endpoint of the first rank; each further rank has the next port. With a wildcard for
  // host Baton binds and the engine connects. Empty: the engine is not to be listened to.
  std::string events;
  std::string replay;  // missed events are requested here; empty: nowhere
  std::string topic;   // what its messages begin with; empty: all of them
  bool operator==(const KvFeed&) const = default;
};

inline constexpr std::string_view kDefaultNamespace = "default";

// The configuration of one engine server.
struct WorkerSpec {
  Endpoint endpoint;
  Engine engine = Engine::Vllm;
  Role role = Role::Aggregated;
  // The name in pins, allow lists and answers; empty: host:port.
  std::string name;
  // Prefill and decode workers hand over only within one.
  std::string name_space{kDefaultNamespace};
  // Identifies the engine's run: another run at the same address is another worker. Empty: unknown.
  std::string instance;
  std::optional<HandoffMode> handoff;  // absent: default_mode(engine)
  // SGLang and Mooncake prefill workers: where decode workers meet them. Asked of the engine where
  // absent.
  std::optional<std::uint16_t> bootstrap_port;
  std::optional<NixlPeer> nixl;
  std::uint32_t data_parallel_size = 1;
  std::vector<std::string> taints;    // what a request may require or prefer of a worker
  std::vector<std::string> topology;  // domain=value: where the worker is
  std::optional<TransferDomain> transfer_domain;  // prefill workers: where decode should be
  // Asked of the engine where absent, as far as it can say.
  std::optional<KvFeed> kv_feed;
  std::optional<std::uint32_t> block_size;          // tokens in a KV block
  std::optional<std::uint64_t> kv_blocks;           // that each rank has
  std::optional<std::uint64_t> max_batched_tokens;  // that a rank computes in one step

  HandoffMode mode() const { return handoff.value_or(default_mode(engine)); }
  bool operator==(const WorkerSpec&) const = default;
};

// A server that is offered for a model, whatever the source.
struct Announcement {
  std::string model;
  WorkerSpec spec;
  bool draining = false;  // it is about to leave: no new requests
  bool operator==(const Announcement&) const = default;
};

}  // namespace baton::model
