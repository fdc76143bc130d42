// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace baton::fleet {
namespace {

bool has(const Pool& pool, model::WorkerId id) {
  for (const model::Role role :
       {model::Role::Decode, model::Role::Aggregated, model::Role::Prefill}) {
    const auto members = pool.workers(role).members();
    if (std::ranges::any_of(members->workers,
                            [id](const auto& worker) { return worker->id() == id; })) {
      return true;
    }
  }
  return false;
}

}  // namespace

Model::Model(const config::Model& config, telemetry::Registry& metrics, telemetry::Logger& log,
             std::shared_ptr<LoadNotifier> load_notifier)
    : options_(config),
      metrics_(metrics),
      log_(log),
      load_notifier_(std::move(load_notifier)),
      default_pool_(std::make_shared<Pool>(config, std::string(model::kDefaultNamespace), metrics,
                                           log, load_notifier_)),
      prefill_sessions_(config.affinity.ttl, config.affinity.sessions),
      decode_sessions_(config.affinity.ttl, config.affinity.sessions) {
  options_.workers.clear();
}

std::shared_ptr<Pool> Model::add(const std::shared_ptr<Worker>& worker) {
  const std::string& name_space = worker->spec().name_space;
  auto home = pool(name_space);
  if (!home) {
    home = name_space == default_pool_->name()
               ? default_pool_
               : std::make_shared<Pool>(options_, name_space, metrics_, log_, load_notifier_);
    Pools pools = *pools_.get();
    pools.insert(std::ranges::upper_bound(pools, name_space, {}, &Pool::name), home);
    home->add(worker);
    pools_.set(std::move(pools));
    return home;
  }
  home->add(worker);
  return home;
}

void Model::remove(const Worker& worker) {
  const auto home = pool(worker.spec().name_space);
  if (!home) return;
  home->remove(worker);
  if (!home->empty()) return;
  Pools pools = *pools_.get();
  std::erase(pools, home);
  pools_.set(std::move(pools));
  home->forget_listener();  // the default one stays
}

std::shared_ptr<Pool> Model::pool(std::string_view name_space) const {
  const auto pools = pools_.get();
  const auto found = std::ranges::find(*pools, name_space, &Pool::name);
  return found == pools->end() ? nullptr : *found;
}

std::shared_ptr<Pool> Model::choose(const scheduling::Hints& hints, const Random& random) {
  const auto pools = pools_.get();
  if (pools->empty()) return default_pool_;
  if (pools->size() == 1) return pools->front();
  for (const auto& pin : {hints.decode, hints.prefill}) {
    if (!pin) continue;
    const auto named = std::ranges::find_if(
        *pools, [&](const auto& one) { return one->find_worker(pin->worker) != nullptr; });
    if (named != pools->end()) return *named;
  }
  if (auto home = pool_of_session(*pools, hints.session_id)) return home;
  // The ready ones; if none is, one with workers may still succeed. Checked once: the result may
  // change in the next moment.
  Pools ready;
  std::ranges::copy_if(*pools, std::back_inserter(ready),
                       [](const auto& one) { return one->why_not_ready().empty(); });
  std::vector<std::pair<std::shared_ptr<Pool>, std::size_t>> shares;
  std::size_t total = 0;
  for (const auto& one : ready.empty() ? *pools : ready) {
    total += std::max<std::size_t>(one->weight(), 1);
    shares.emplace_back(one, total);
  }
  const std::size_t dice = random() % total;
  return std::ranges::find_if(shares, [dice](const auto& share) { return dice < share.second; })
      ->first;
}

std::shared_ptr<Pool> Model::pool_of_session(const Pools& pools, const std::string& session) {
  if (session.empty() || !decode_sessions_.enabled()) return nullptr;
  const auto rank = decode_sessions_.find(session);
  if (!rank) return nullptr;
  const auto home =
      std::ranges::find_if(pools, [&](const auto& one) { return has(*one, rank->worker); });
  return home == pools.end() || !(*home)->why_not_ready().empty() ? nullptr : *home;
}

model::EngineSet Model::engines(std::initializer_list<model::Role> roles) const {
  model::EngineSet found;
  const auto pools = pools_.get();
  for (const auto& one : *pools) {
    for (const model::Role role : roles) found |= one->workers(role).members()->engines;
  }
  return found;
}

std::shared_ptr<Worker> Model::find_worker(std::string_view name) const {
  const auto pools = pools_.get();
  for (const auto& one : *pools) {
    if (auto worker = one->find_worker(name)) return worker;
  }
  return nullptr;
}

scheduling::AffinityTable& Model::affinity(model::Role role) {
  return role == model::Role::Prefill ? prefill_sessions_ : decode_sessions_;
}

bool Model::disaggregated() const {
  const auto pools = pools_.get();
  return std::ranges::any_of(*pools, [](const auto& one) { return one->disaggregated(); });
}

std::string Model::why_not_ready() const {
  const auto pools = pools_.get();
  if (pools->empty()) return default_pool_->why_not_ready();
  std::string why;
  for (const auto& one : *pools) {
    const std::string missing = one->why_not_ready();
    if (missing.empty()) return "";
    if (!why.empty()) why += "; ";
    why += pools->size() == 1 ? missing : fmt::format("{}: {}", one->name(), missing);
  }
  return why;
}

}  // namespace baton::fleet
