// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sidecar/introduction.h"

#include "config/announcement.h"
#include "engine/shared/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace baton::sidecar {
namespace {

// Adapters are asked for through their base model.
const engine::Facts::Card* first_base_model(const engine::Facts& facts) {
  const auto found = std::ranges::find(facts.models, "", &engine::Facts::Card::parent);
  return found == facts.models.end() ? nullptr : &*found;
}

// True for prefill workers that decode workers meet at a bootstrap server.
bool has_bootstrap_server(const model::WorkerSpec& spec) {
  return spec.role == model::Role::Prefill && (spec.mode() == model::HandoffMode::Bootstrap ||
                                               spec.mode() == model::HandoffMode::Mooncake);
}

}  // namespace

std::expected<model::Announcement, std::string> introduce(const Introduction& said,
                                                          const engine::Facts& facts) {
  model::Announcement announced = said.announcement;
  model::WorkerSpec& spec = announced.spec;
  if (announced.model.empty()) {
    const auto* const card = first_base_model(facts);
    if (card == nullptr) {
      return std::unexpected(
          fmt::format("the engine does not say which model it serves{}{}; give --model",
                      facts.unknown_because.empty() ? "" : ": ", facts.unknown_because));
    }
    announced.model = card->id;
  }
  if (said.asks_data_parallel_size && facts.data_parallel_size) {
    spec.data_parallel_size = *facts.data_parallel_size;
  }
  if (!spec.bootstrap_port && has_bootstrap_server(spec))
    spec.bootstrap_port = facts.bootstrap_port;
  if (const auto denied = engine::contradictions(announced.model, spec, facts); !denied.empty()) {
    return std::unexpected(fmt::format("{}", fmt::join(denied, "; ")));
  }
  // Readers of the announcement check it by the same rules, so check it here.
  auto read = config::parse_announcement(config::to_json(announced), "what the engine says");
  if (read) return *std::move(read);
  std::vector<std::string> problems;
  for (const config::Problem& problem : read.error()) problems.push_back(problem.to_string());
  return std::unexpected(fmt::format("{}", fmt::join(problems, "; ")));
}

}  // namespace baton::sidecar
