// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/dialect.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"
#include "model/worker.h"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace baton::engine {

using boost::asio::awaitable;

// NIXL push: what `kv_transfer_params` of a prefill answer tell about the rank that wrote them.
std::optional<model::NixlPeer> nixl_peer_in(std::string_view kv_transfer_params);

// Role. Knows of each prefill worker what a decode worker must be told before the prefill has
//   answered: from the configuration, or asked of the worker once.
// Confinement. One I/O thread.
// Invariants. What a worker said is kept until forget() or doubt(); what it failed to say is asked
//   again.
class PeerDirectory {
 public:
  PeerDirectory(http_client::UpstreamPool& pool, http_client::ExchangeTimeouts timeouts);

  // What the worker's mode needs, for one of its ranks. `spec` must stay until the answer is there.
  // EngineUnreachable where the worker had to be asked and is not there; NoHandoff where neither
  // the configuration nor the worker says it. Only SGLang's port may stay open: the engine then
  // uses its own default.
  awaitable<Result<PrefillPeer>> find(model::WorkerId id, const model::WorkerSpec& spec,
                                      std::uint32_t rank);
  // NIXL push: who a rank is, where the configuration does not say so.
  void learn(model::WorkerId id, std::uint32_t rank, model::NixlPeer peer);
  // The worker could not be reached: what it said may no longer be true.
  void forget(model::WorkerId id);
  // A hand-off failed of which the decode worker was told `told`, which may no longer be true: the
  // worker is asked again, unless it has said something else since.
  void invalidate_if_stale(model::WorkerId id, std::uint32_t rank, const PrefillPeer& told);

 private:
  struct Known {
    std::optional<std::uint16_t> bootstrap_port;                      // SGLang
    std::unordered_map<std::uint32_t, model::NixlPeer> nixl;          // by rank
    std::unordered_map<std::uint32_t, std::string> mooncake_engines;  // by rank
    std::string server_info;                                          // generation first
  };
  static bool newer(const Known& known, std::uint32_t rank, const PrefillPeer& told);
  // The body of a 200.
  awaitable<Result<std::string>> ask(http_client::Target target, std::string_view path);
  awaitable<Result<void>> find_bootstrap_port(model::WorkerId id, const model::WorkerSpec& spec,
                                              PrefillPeer& peer);
  awaitable<Result<void>> find_mooncake_engine(model::WorkerId id, const model::WorkerSpec& spec,
                                               std::uint32_t rank, PrefillPeer& peer);
  awaitable<Result<void>> find_server_info(model::WorkerId id, const model::WorkerSpec& spec,
                                           PrefillPeer& peer);
  Result<void> find_nixl(model::WorkerId id, const model::WorkerSpec& spec, std::uint32_t rank,
                         PrefillPeer& peer) const;

  http_client::UpstreamPool& pool_;
  http_client::ExchangeTimeouts timeouts_;
  std::unordered_map<std::uint64_t, Known> known_;
};

}  // namespace baton::engine
