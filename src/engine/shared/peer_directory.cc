// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/peer_directory.h"

#include "engine/vllm/vllm_dialect.h"
#include "http_client/fetch.h"
#include "wire/http_status.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace baton::engine {
namespace {

// A request waits for this, so it must not take as long as an answer may.
constexpr std::chrono::milliseconds kTimeout{3'000};
using wire::kOk;
// Default port of the side channel of vLLM's first rank; the other ranks count up.
constexpr std::uint16_t kNixlSideChannelPort = 5600;
// A worker's bootstrap server is another server: its connections must not be taken for the
// worker's. Ids of workers are counted from the bottom, and never get here.
constexpr std::uint64_t kBootstrapServer = std::uint64_t{1} << 63;

std::optional<std::uint16_t> as_port(std::optional<std::int64_t> number) {
  if (!number || *number <= 0 || *number > std::numeric_limits<std::uint16_t>::max())
    return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

std::optional<std::uint32_t> as_size(std::optional<std::int64_t> number) {
  if (!number || *number <= 0 || *number > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

std::optional<model::NixlPeer> nixl_peer_in(std::string_view kv_transfer_params) {
  const auto params = wire::JsonObject::parse(kv_transfer_params);
  if (!params) return std::nullopt;
  auto engine_id = params->find_string("remote_engine_id");
  auto host = params->find_string("remote_host");
  const auto port = as_port(params->find_integer("remote_port"));
  if (!engine_id || engine_id->empty() || !host || host->empty() || !port) return std::nullopt;
  return model::NixlPeer{
      .engine_id = std::move(*engine_id),
      .side_channel = {std::move(*host), *port},
      .tensor_parallel_size = as_size(params->find_integer("tp_size")).value_or(1),
      .pipeline_parallel_size = as_size(params->find_integer("pp_size")).value_or(1)};
}

PeerDirectory::PeerDirectory(http_client::UpstreamPool& pool,
                             http_client::ExchangeTimeouts timeouts)
    : pool_(pool), timeouts_(timeouts) {
  timeouts_.first_byte = std::min(timeouts_.first_byte, kTimeout);
  timeouts_.idle = std::min(timeouts_.idle, kTimeout);
}

awaitable<Result<PrefillPeer>> PeerDirectory::find(model::WorkerId id,
                                                   const model::WorkerSpec& spec,
                                                   std::uint32_t rank) {
  PrefillPeer peer;
  peer.host = spec.endpoint.host;
  Result<void> found;
  switch (spec.mode()) {
    case model::HandoffMode::NixlPull:
    case model::HandoffMode::ContextFirst:
      break;
    case model::HandoffMode::NixlPush:
      found = find_nixl(id, spec, rank, peer);
      break;
    case model::HandoffMode::Mooncake:
      found = co_await find_mooncake_engine(id, spec, rank, peer);
      break;
    case model::HandoffMode::Bootstrap:
      found = co_await find_bootstrap_port(id, spec, peer);
      break;
    case model::HandoffMode::GenerationFirst:
      found = co_await find_server_info(id, spec, peer);
      break;
  }
  if (!found) co_return fail(std::move(found.error()));
  co_return peer;
}

void PeerDirectory::forget(model::WorkerId id) {
  known_.erase(id.value);
  pool_.forget({id.value | kBootstrapServer});
}

void PeerDirectory::invalidate_if_stale(model::WorkerId id, std::uint32_t rank,
                                        const PrefillPeer& told) {
  const auto known = known_.find(id.value);
  if (known == known_.end() || !newer(known->second, rank, told)) forget(id);
}

// Compares only what `told` contains: a value it lacks, as in another mode, is never newer.
bool PeerDirectory::newer(const Known& known, std::uint32_t rank, const PrefillPeer& told) {
  if (!told.nixl.engine_id.empty()) {
    const auto now = known.nixl.find(rank);
    return now != known.nixl.end() && now->second != told.nixl;
  }
  if (!told.engine_id.empty()) {
    const auto now = known.mooncake_engines.find(rank);
    return now != known.mooncake_engines.end() && now->second != told.engine_id;
  }
  return !told.server_info.empty() && !known.server_info.empty() &&
         known.server_info != told.server_info;
}

void PeerDirectory::learn(model::WorkerId id, std::uint32_t rank, model::NixlPeer peer) {
  known_[id.value].nixl[rank] = std::move(peer);
}

awaitable<Result<std::string>> PeerDirectory::ask(http_client::Target target,
                                                  std::string_view path) {
  auto answer = co_await http_client::fetch(pool_, target, {.path = path}, timeouts_);
  if (!answer) co_return fail(std::move(answer.error()));
  if (answer->status != kOk) {
    co_return fail(Errc::EngineFailed, fmt::format("{} of {} answered with status {}", path,
                                                   target.endpoint.to_string(), answer->status));
  }
  co_return std::move(answer->body);
}

awaitable<Result<void>> PeerDirectory::find_bootstrap_port(model::WorkerId id,
                                                           const model::WorkerSpec& spec,
                                                           PrefillPeer& peer) {
  peer.bootstrap_port = spec.bootstrap_port;
  if (peer.bootstrap_port) co_return Result<void>();
  if (const auto known = known_.find(id.value); known != known_.end())
    peer.bootstrap_port = known->second.bootstrap_port;
  peer.remembered = peer.bootstrap_port.has_value();
  if (peer.remembered) co_return Result<void>();

  const auto text = co_await ask({id, spec.endpoint}, "/server_info");
  if (!text && (text.error().code() == Errc::EngineUnreachable ||
                text.error().code() == Errc::OutOfResources))
    co_return fail(text.error());
  const auto info = text ? wire::JsonObject::parse(*text) : fail(text.error());
  if (info) peer.bootstrap_port = as_port(info->find_integer("disaggregation_bootstrap_port"));
  if (peer.bootstrap_port) known_[id.value].bootstrap_port = peer.bootstrap_port;
  co_return Result<void>();
}

awaitable<Result<void>> PeerDirectory::find_mooncake_engine(model::WorkerId id,
                                                            const model::WorkerSpec& spec,
                                                            std::uint32_t rank, PrefillPeer& peer) {
  peer.bootstrap_port = spec.bootstrap_port.value_or(kMooncakeBootstrapPort);
  if (const auto known = known_.find(id.value); known != known_.end()) {
    const auto engine = known->second.mooncake_engines.find(rank);
    if (engine != known->second.mooncake_engines.end()) {
      peer.engine_id = engine->second;
      peer.remembered = true;
      co_return Result<void>();
    }
  }
  const model::Endpoint bootstrap{spec.endpoint.host, *peer.bootstrap_port};
  const auto text = co_await ask({{id.value | kBootstrapServer}, bootstrap}, "/query");
  if (!text && text.error().code() != Errc::EngineUnreachable) co_return fail(text.error());
  if (!text) {
    // Its bootstrap server, not the worker itself, is away.
    co_return fail(Errc::NoHandoff, fmt::format("the bootstrap server of {} does not answer: {}",
                                                spec.endpoint.to_string(), text.error().message()));
  }
  const auto ranks = wire::JsonObject::parse(*text);
  if (!ranks) {
    co_return fail(Errc::EngineProtocol,
                   fmt::format("/query of {} answered with no JSON object", bootstrap.to_string()));
  }
  const auto entry = ranks->find_object(fmt::format("{}", rank));
  auto engine_id = entry ? entry->find_string("engine_id") : std::nullopt;
  if (!engine_id || engine_id->empty()) {
    co_return fail(Errc::NoHandoff, fmt::format("/query of {} has no engine_id of rank {}",
                                                bootstrap.to_string(), rank));
  }
  known_[id.value].mooncake_engines[rank] = *engine_id;
  peer.engine_id = std::move(*engine_id);
  co_return Result<void>();
}

awaitable<Result<void>> PeerDirectory::find_server_info(model::WorkerId id,
                                                        const model::WorkerSpec& spec,
                                                        PrefillPeer& peer) {
  if (const auto known = known_.find(id.value); known != known_.end())
    peer.server_info = known->second.server_info;
  peer.remembered = !peer.server_info.empty();
  if (peer.remembered) co_return Result<void>();

  const auto text = co_await ask({id, spec.endpoint}, "/server_info");
  if (!text) co_return fail(text.error());
  const auto info = wire::JsonObject::parse(*text);
  const auto params = info ? info->find_object("disaggregated_params") : std::nullopt;
  if (!params) {
    co_return fail(Errc::NoHandoff, fmt::format("/server_info of {} has no disaggregated_params",
                                                spec.endpoint.to_string()));
  }
  peer.server_info = params->text();
  known_[id.value].server_info = peer.server_info;
  co_return Result<void>();
}

Result<void> PeerDirectory::find_nixl(model::WorkerId id, const model::WorkerSpec& spec,
                                      std::uint32_t rank, PrefillPeer& peer) const {
  if (spec.nixl && !spec.nixl->engine_id.empty()) {
    peer.nixl = *spec.nixl;
    model::Endpoint& channel = peer.nixl.side_channel;
    if (channel.host.empty()) channel.host = spec.endpoint.host;
    if (channel.port == 0) channel.port = kNixlSideChannelPort;
    if (spec.data_parallel_size == 1) return {};
    // The engine names its ranks and numbers their ports so.
    peer.nixl.engine_id += fmt::format("_dp{}", rank);
    const auto port = as_port(std::int64_t{channel.port} + rank);
    if (!port) return fail(Errc::NoHandoff, "nixl.side_channel leaves no port for the rank");
    channel.port = *port;
    return {};
  }
  if (const auto known = known_.find(id.value); known != known_.end()) {
    const auto learned = known->second.nixl.find(rank);
    if (learned != known->second.nixl.end()) {
      peer.nixl = learned->second;
      peer.remembered = true;
      return {};
    }
  }
  return fail(Errc::NoHandoff,
              fmt::format("the NIXL engine id of {} is not known; set nixl.engine_id and "
                          "nixl.side_channel of that worker",
                          spec.endpoint.to_string()));
}

}  // namespace baton::engine
