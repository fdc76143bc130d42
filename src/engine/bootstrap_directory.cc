// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/bootstrap_directory.h"

#include "engine/request_head.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace baton::engine {
namespace {

constexpr std::size_t kLargestServerInfo = 4 * 1024 * 1024;
// A request waits for this, so it must not take as long as an answer may.
constexpr std::chrono::milliseconds kPatience{3'000};

}  // namespace

BootstrapDirectory::BootstrapDirectory(UpstreamPool& pool, ExchangeTimeouts timeouts)
    : pool_(pool), timeouts_(timeouts) {
  timeouts_.first_byte = std::min(timeouts_.first_byte, kPatience);
  timeouts_.idle = std::min(timeouts_.idle, kPatience);
}

awaitable<Result<std::optional<std::uint16_t>>> BootstrapDirectory::find_port(
    model::WorkerId id, const model::WorkerSpec& spec) {
  if (spec.bootstrap_port) co_return spec.bootstrap_port;
  if (const auto found = known_.find(id.value); found != known_.end()) co_return found->second;

  Exchange exchange(pool_, Target{id, spec.endpoint}, timeouts_, nullptr, OnCancel::Finish);
  const std::string head = request_head("GET", "/server_info", spec.endpoint.to_string(), {}, 0);
  const std::vector<std::string_view> no_body;
  const auto sent = co_await exchange.send(head, no_body);
  if (!sent && sent.error().code() == Errc::EngineUnreachable) co_return fail(sent.error());
  if (!sent || exchange.head().status != 200) co_return std::nullopt;
  const auto text = co_await exchange.read_all(kLargestServerInfo);
  if (!text) co_return std::nullopt;
  const auto info = wire::JsonObject::parse(*text);
  const auto port = info ? info->find_integer("disaggregation_bootstrap_port") : std::nullopt;
  if (!port || *port <= 0 || *port > std::numeric_limits<std::uint16_t>::max())
    co_return std::nullopt;
  known_[id.value] = static_cast<std::uint16_t>(*port);
  co_return static_cast<std::uint16_t>(*port);
}

}  // namespace baton::engine
