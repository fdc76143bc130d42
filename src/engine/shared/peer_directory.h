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

// NIXL push: the rank that wrote a prefill answer, from its `kv_transfer_params`.
std::optional<model::NixlPeer> nixl_peer_in(std::string_view kv_transfer_params);

// Role. Holds the data that a decode worker needs about each prefill worker before the prefill has
//   answered: from the configuration, or asked of the worker once.
// Confinement. One I/O thread.
// Invariants. A worker's answer is kept until forget() or invalidate_if_stale(); a fact that it did
//   not tell is asked again.
class PeerDirectory {
 public:
  PeerDirectory(http_client::UpstreamPool& pool, http_client::ExchangeTimeouts timeouts);

  // The peer data that the worker's mode needs, for one of its ranks. `spec` must stay until the
  // answer is there. EngineUnreachable: the worker had to be asked and is not there. NoHandoff:
  // neither the configuration nor the worker says it. Only SGLang's port may stay open: the engine
  // then uses its own default.
  awaitable<Result<PrefillPeer>> find(model::WorkerId id, const model::WorkerSpec& spec,
                                      std::uint32_t rank);
  // NIXL push: the identity of a rank, if the configuration does not give it.
  void learn(model::WorkerId id, std::uint32_t rank, model::NixlPeer peer);
  // The worker could not be reached: its answers may be outdated.
  void forget(model::WorkerId id);
  // A hand-off failed whose decode worker was given `told`. The worker is asked again, unless its
  // data has changed since.
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
