// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/fleet.h"

#include "fleet/pool_advice.h"
#include "scheduling/policy/batch_limit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

namespace baton::fleet {
namespace {

Roster::Announcements announcements_of(const std::vector<config::Model>& models) {
  Roster::Announcements all;
  for (const config::Model& model : models) {
    for (const model::WorkerSpec& spec : model.workers) {
      model::Announcement one{.model = model.name, .spec = spec};
      const Slot slot = slot_of(one);
      all.emplace(slot.model + " " + slot.server, std::move(one));
    }
  }
  return all;
}

// In the order of the file, which numbers and turns follow; slots no longer in it come last.
std::vector<Slot> in_order_of(const std::vector<config::Model>& models,
                              const std::vector<Slot>& slots) {
  std::set<Slot> rest(slots.begin(), slots.end());
  std::vector<Slot> ordered;
  for (const config::Model& model : models) {
    for (const model::WorkerSpec& spec : model.workers) {
      Slot slot{model.name, spec.endpoint.to_string()};
      if (rest.erase(slot) > 0) ordered.push_back(std::move(slot));
    }
  }
  ordered.insert(ordered.end(), rest.begin(), rest.end());
  return ordered;
}

config::Model options_of(config::Model model) {
  model.workers.clear();
  return model;
}

// The sum of its ranks' request limits; nothing if one of them is unbounded. A limit learned for an
// objective that the model no longer has does not count.
std::optional<std::int64_t> batch_limit_of(const Fleet::Member& one) {
  if (one.model->routing().least_itl() == std::chrono::milliseconds(0)) return std::nullopt;
  std::int64_t sum = 0;
  for (std::uint32_t rank = 0; rank < one.worker->ranks(); ++rank) {
    const std::int64_t most = one.worker->batch_limit(rank).most();
    if (most == scheduling::BatchLimit::kUnlimited) return std::nullopt;
    sum += most;
  }
  return sum;
}

}  // namespace

Fleet::Fleet(const config::Config& config, telemetry::Registry& metrics, telemetry::Logger& log)
    : metrics_(metrics), log_(log), health_(config.health) {
  configure(config.models);
  add_metrics();
}

void Fleet::add_metrics() {
  using Named = std::vector<std::pair<std::string, std::string (*)(const Member&)>>;
  // The sum over a worker's ranks; a leaving worker and its successor may share an address.
  const auto summed = [this](Named named, std::int64_t (*of)(const scheduling::RankLoad&)) {
    return [this, named = std::move(named), of](const telemetry::Registry::Emit& emit) {
      std::map<telemetry::Labels, std::int64_t> loads;
      for (const Member& one : members()) {
        telemetry::Labels labels;
        for (const auto& [name, value] : named) labels.emplace_back(name, value(one));
        std::int64_t& load = loads[std::move(labels)];
        for (std::uint32_t rank = 0; rank < one.worker->ranks(); ++rank)
          load += of(*one.worker->load(rank));
      }
      for (const auto& [labels, load] : loads) emit(labels, load);
    };
  };
  const auto model = [](const Member& one) { return one.model->name(); };
  const auto server = [](const Member& one) { return one.worker->authority(); };
  const auto role = [](const Member& one) {
    return std::string(model::to_string(one.worker->spec().role));
  };
  metrics_.collect("baton_worker_in_flight", "Requests running on a worker now.",
                   summed({{"model", model}, {"worker", server}, {"role", role}},
                          [](const scheduling::RankLoad& load) { return load.requests(); }));
  metrics_.collect("baton_worker_prefill_tokens",
                   "Prompt tokens a worker has yet to compute, as booked.",
                   summed({{"model", model}, {"worker", server}, {"role", role}},
                          [](const scheduling::RankLoad& load) { return load.prefill_tokens(); }));
  metrics_.collect("baton_worker_decode_blocks", "KV blocks of the requests that run on a worker.",
                   summed({{"model", model}, {"worker", server}, {"role", role}},
                          [](const scheduling::RankLoad& load) {
                            return static_cast<std::int64_t>(std::llround(load.decode_blocks()));
                          }));
  metrics_.collect("baton_worker_batch_limit",
                   "Requests that a worker decodes at most at once, so that its tokens keep the "
                   "objective slo.itl.",
                   [this](const telemetry::Registry::Emit& emit) {
                     std::map<telemetry::Labels, std::int64_t> limits;
                     for (const Member& one : members()) {
                       const auto most = batch_limit_of(one);
                       if (!most) continue;
                       const model::WorkerSpec& spec = one.worker->spec();
                       limits[{{"model", one.model->name()},
                               {"worker", one.worker->authority()},
                               {"role", std::string(model::to_string(spec.role))}}] += *most;
                     }
                     for (const auto& [labels, most] : limits) emit(labels, most);
                   });
  metrics_.collect("baton_workers", "Workers, by what they are now.",
                   [this](const telemetry::Registry::Emit& emit) {
                     const Time now = Clock::now();
                     std::map<telemetry::Labels, std::int64_t> counts;
                     for (const Member& one : members()) {
                       const model::WorkerSpec& spec = one.worker->spec();
                       ++counts[{{"model", one.model->name()},
                                 {"namespace", spec.name_space},
                                 {"role", std::string(model::to_string(spec.role))},
                                 {"state", std::string(one.worker->state(now))}}];
                     }
                     for (const auto& [labels, count] : counts) emit(labels, count);
                   });
  // Looked up, so that a namespace that is gone has none.
  metrics_.collect("baton_prefill_state",
                   "Prefill workers: 0 none heard of, 1 active, 2 none available.",
                   [this](const telemetry::Registry::Emit& emit) {
                     for (const auto& served : models()) {
                       const auto pools = served->pools();
                       for (const auto& pool : *pools) {
                         emit({{"model", served->name()}, {"namespace", pool->name()}},
                              static_cast<std::int64_t>(pool->prefill_state()));
                       }
                     }
                   });
  metrics_.collect_counts(
      "baton_prefill_transitions_total",
      "Changes of whether prefill workers can be counted on, by what became of it.",
      [this](const telemetry::Registry::Emit& emit) {
        for (const auto& served : models()) {
          const auto pools = served->pools();
          for (const auto& pool : *pools) {
            const Lifecycle& prefill = pool->prefill_lifecycle();
            for (const auto& [to, count] : {std::pair("active", prefill.activations()),
                                            std::pair("unavailable", prefill.deactivations())}) {
              emit({{"model", served->name()}, {"namespace", pool->name()}, {"to", to}},
                   static_cast<std::int64_t>(count));
            }
          }
        }
      });
  metrics_.collect("baton_wanted_workers", "Workers that the load of the last minutes needs.",
                   [this](const telemetry::Registry::Emit& emit) {
                     const Time now = Clock::now();
                     for (const auto& served : models()) {
                       const auto pools = served->pools();
                       for (const auto& pool : *pools) {
                         for (const Advice& one : advise(*served, *pool, now)) {
                           emit({{"model", served->name()},
                                 {"namespace", pool->name()},
                                 {"role", std::string(model::to_string(one.role))}},
                                static_cast<std::int64_t>(one.wanted));
                         }
                       }
                     }
                   });
}

Fleet::Served Fleet::find_served(std::string_view name) const {
  const auto catalog = catalog_.get();
  const auto found = catalog->by_name.find(name);
  return found == catalog->by_name.end() ? Served() : found->second;
}

std::vector<std::pair<std::string, std::string>> Fleet::adapters() const {
  std::vector<std::pair<std::string, std::string>> all;
  const auto catalog = catalog_.get();
  for (const auto& [name, served] : catalog->by_name) {
    if (served.adapter) all.emplace_back(name, served.model->name());
  }
  std::ranges::sort(all);
  return all;
}

std::shared_ptr<Worker> Fleet::find_worker(std::string_view name) const {
  const auto catalog = catalog_.get();
  for (const auto& model : catalog->models) {
    if (auto worker = model->find_worker(name)) return worker;
  }
  return nullptr;
}

void Fleet::configure(const std::vector<config::Model>& models) {
  std::vector<config::Model> before = std::exchange(configured_, {});
  for (const config::Model& model : models) configured_.push_back(options_of(model));
  // A model with changed options is a new object; its workers keep their load and their health.
  const auto options = [](const std::vector<config::Model>& list, const std::string& name) {
    const auto found = std::ranges::find(list, name, &config::Model::name);
    return found == list.end() ? std::nullopt : std::optional(*found);
  };
  std::vector<std::string> renewed;
  for (const auto& [name, model] : models_) {
    if (options(before, name) != options(configured_, name)) renewed.push_back(name);
  }
  for (const std::string& name : renewed) models_.erase(name);
  for (const config::Model& model : configured_) model_for(model.name);
  for (auto& [slot, registered] : registered_) {
    if (std::ranges::find(renewed, registered.model->name()) != renewed.end())
      amend(registered, model::WorkerSpec(registered.worker->spec()));
  }
  settle(in_order_of(models, roster_.replace(Origin::File, announcements_of(models))));
  publish();
}

void Fleet::announce(Origin origin, std::string_view key, model::Announcement announcement) {
  settle(roster_.put(origin, key, std::move(announcement)));
}

void Fleet::withdraw(Origin origin, std::string_view key) { settle(roster_.remove(origin, key)); }

void Fleet::replace(Origin origin, Roster::Announcements announcements) {
  settle(roster_.replace(origin, std::move(announcements)));
}

void Fleet::apply(Origin origin, Changes changes) {
  std::set<Slot> touched;
  for (auto& [key, said] : changes) {
    const auto slots =
        said ? roster_.put(origin, key, *std::move(said)) : roster_.remove(origin, key);
    touched.insert(slots.begin(), slots.end());
  }
  settle({touched.begin(), touched.end()});
}

void Fleet::settle(const std::vector<Slot>& slots) {
  if (slots.empty()) return;
  // New workers first, so that a replacement is there before the old one goes.
  const auto stays = [this](const Slot& slot) { return roster_.find(slot).has_value(); };
  for (const Slot& slot : slots) {
    if (stays(slot)) settle(slot);
  }
  publish();
  if (std::ranges::all_of(slots, stays)) return;
  for (const Slot& slot : slots) {
    if (!stays(slot)) settle(slot);
  }
  publish();
}

void Fleet::settle(const Slot& slot) {
  const auto said = roster_.find(slot);
  const auto registered = registered_.find(slot);
  if (!said) {
    drained_.erase(slot);
    if (registered == registered_.end()) return;
    retire(std::move(registered->second));
    registered_.erase(registered);
    return;
  }
  const model::WorkerSpec& spec = said->announcement.spec;
  const auto make = [&] {
    auto worker = make_worker(slot.model, spec);
    worker->set_draining(said->announcement.draining);  // before it can be chosen
    return worker;
  };
  if (registered == registered_.end()) {
    add_worker(slot, make(), "joined");
  } else if (const model::WorkerSpec& before = registered->second.worker->spec();
             before.instance != spec.instance ||
             before.data_parallel_size != spec.data_parallel_size) {
    drained_.erase(slot);
    Registered old = std::move(registered->second);
    add_worker(slot, make(), "joined");
    retire(std::move(old));
  } else if (before != spec) {
    amend(registered->second, spec);
  }
  set_draining(registered_.at(slot), said->announcement.draining || drained_.contains(slot));
}

void Fleet::add_worker(const Slot& slot, const std::shared_ptr<Worker>& worker,
                       std::string_view how) {
  auto model = model_for(slot.model);
  auto pool = model->add(worker);
  pool->report(*worker, how, "");
  registered_.insert_or_assign(slot, Registered{worker, std::move(model), std::move(pool)});
  for (const OnAdded& call : on_added_) call(worker, slot.model);
}

void Fleet::retire(Registered registered) {
  registered.worker->set_draining(true);
  registered.model->remove(*registered.worker);
  registered.pool->report(*registered.worker, "leaving", "");
  leaving_.push_back(std::move(registered));
}

void Fleet::amend(Registered& registered, const model::WorkerSpec& spec) {
  const std::shared_ptr<Worker> before = registered.worker;
  const std::shared_ptr<Model> old_home = registered.model;
  registered.worker = std::make_shared<Worker>(*before, spec);
  registered.model = model_for(old_home->name());
  registered.pool = registered.model->add(registered.worker);
  // A model with other options is another one: requests that keep the old one keep its workers.
  if (registered.model == old_home) old_home->remove(*before);
  registered.pool->report(*registered.worker, "amended", "");
  for (const OnAdded& call : on_added_) call(registered.worker, registered.model->name());
}

void Fleet::set_draining(const Registered& registered, bool draining) {
  if (!registered.worker->set_draining(draining)) return;
  registered.pool->report(*registered.worker, draining ? "draining" : "undrained", "");
}

std::shared_ptr<Model> Fleet::model_for(const std::string& name) {
  const auto known = models_.find(name);
  if (known != models_.end()) return known->second;
  const auto configured = std::ranges::find(configured_, name, &config::Model::name);
  config::Model options;
  options.name = name;
  if (configured != configured_.end()) options = *configured;
  auto& load_notifier = load_notifiers_[name];
  if (!load_notifier) load_notifier = std::make_shared<LoadNotifier>();
  auto model = std::make_shared<Model>(options, metrics_, log_, load_notifier);
  models_.emplace(name, model);
  return model;
}

void Fleet::publish() {
  // A model that the file does not name is there as long as it has workers.
  std::erase_if(models_, [this](const auto& named) {
    return named.second->pools()->empty() &&
           std::ranges::find(configured_, named.first, &config::Model::name) == configured_.end();
  });
  std::erase_if(load_notifiers_,
                [this](const auto& named) { return !models_.contains(named.first); });
  Catalog catalog;
  for (const config::Model& model : configured_) catalog.models.push_back(models_.at(model.name));
  for (const auto& [name, model] : models_) {
    if (std::ranges::find(configured_, name, &config::Model::name) == configured_.end())
      catalog.models.push_back(model);
  }
  // A name wins over an alias, and the file's models over later ones.
  for (const auto& model : catalog.models) catalog.by_name.emplace(model->name(), Served{model});
  for (const auto& model : catalog.models) {
    for (const std::string& alias : model->aliases()) catalog.by_name.emplace(alias, Served{model});
  }
  for (const auto& model : catalog.models) {
    for (const std::string& name : model->adapters())
      catalog.by_name.emplace(name, Served{model, AdapterRequest{name, true}});
  }
  for (const auto& [slot, registered] : registered_) {
    for (const std::string& name : *registered.worker->adapters())
      catalog.by_name.emplace(name, Served{registered.model, AdapterRequest{name, false}});
  }
  catalog_.set(std::move(catalog));
}

std::shared_ptr<Worker> Fleet::make_worker(const std::string& model,
                                           const model::WorkerSpec& spec) {
  const auto [kind, is_new] = siblings_.try_emplace({model, spec.role});
  if (is_new) {
    kind->second = {.pace = std::make_shared<scheduling::SiblingPace>(),
                    .transfers = std::make_shared<scheduling::TransferPace>(),
                    .loads = std::make_shared<PagedPool<scheduling::RankLoad>>()};
  }
  return std::make_shared<Worker>(model::WorkerId{next_id_++}, spec, health_, kind->second);
}

std::map<Slot, Fleet::Registered>::iterator Fleet::find_registered(model::WorkerId id) {
  return std::ranges::find_if(registered_,
                              [id](const auto& entry) { return entry.second.worker->id() == id; });
}

bool Fleet::drain(model::WorkerId id, bool draining) {
  const auto registered = find_registered(id);
  if (registered == registered_.end()) return false;
  if (draining) {
    drained_.insert(registered->first);
  } else {
    drained_.erase(registered->first);
  }
  settle(registered->first);
  return true;
}

void Fleet::loaded(model::WorkerId id, std::vector<std::string> adapters) {
  const auto registered = find_registered(id);
  if (registered == registered_.end() || *registered->second.worker->adapters() == adapters) return;
  registered->second.worker->has_adapters(std::move(adapters));
  publish();
}

void Fleet::restarted(model::WorkerId id) {
  const auto registered = find_registered(id);
  if (registered == registered_.end()) return;
  const Slot slot = registered->first;
  Registered old = std::move(registered->second);
  auto fresh = make_worker(old.model->name(), old.worker->spec());
  fresh->set_draining(old.worker->draining());
  add_worker(slot, fresh, "restarted");
  retire(std::move(old));
  settle(slot);
  publish();  // its adapters went with it
}

void Fleet::sweep() {
  // Workers that were added and drained by the admin address are removed without a further request.
  std::vector<std::string> drained;
  for (const Slot& slot : drained_) {
    const auto said = roster_.find(slot);
    if (said && said->origin == Origin::Admin && registered_.at(slot).worker->in_flight() == 0)
      drained.push_back(said->key);
  }
  for (const std::string& key : drained) withdraw(Origin::Admin, key);
  const auto done = std::ranges::partition(
      leaving_, [](const Registered& one) { return one.worker->in_flight() > 0; });
  for (const Registered& one : done) {
    one.pool->report(*one.worker, "gone", "");
    for (const OnGone& call : on_gone_) call(one.worker->id());
  }
  leaving_.erase(done.begin(), done.end());
}

std::vector<Fleet::Member> Fleet::members() const {
  std::vector<Member> all;
  all.reserve(registered_.size() + leaving_.size());
  for (const auto& [slot, registered] : registered_) {
    const auto said = roster_.find(slot);
    all.push_back({registered.worker, registered.model, registered.pool, said->origin, said->key});
  }
  for (const Registered& one : leaving_)
    all.push_back({one.worker, one.model, one.pool, Origin::File, "", true});
  return all;
}

std::optional<Fleet::Member> Fleet::find_member(std::string_view name) const {
  std::vector<Member> all = members();
  auto found = std::ranges::find_if(
      all, [name](const Member& one) { return !one.leaving && one.worker->name() == name; });
  if (found == all.end()) {
    found = std::ranges::find_if(all,
                                 [name](const Member& one) { return one.worker->is_called(name); });
  }
  if (found == all.end()) return std::nullopt;
  return std::move(*found);
}

std::optional<Fleet::Member> Fleet::find_member(const Slot& slot) const {
  const auto found = registered_.find(slot);
  if (found == registered_.end()) return std::nullopt;
  const Registered& registered = found->second;
  const auto said = roster_.find(slot);
  return Member{registered.worker, registered.model, registered.pool, said->origin, said->key};
}

std::shared_ptr<Worker> Fleet::find_namesake(const Slot& slot, std::string_view name) const {
  for (auto one = registered_.lower_bound({.model = slot.model, .server = {}});
       one != registered_.end() && one->first.model == slot.model; ++one) {
    const std::shared_ptr<Worker>& worker = one->second.worker;
    const bool called_so = worker->name() == name || worker->authority() == name;
    if (called_so && one->first.server != slot.server) return worker;
  }
  return nullptr;
}

void Fleet::on_added(OnAdded call) {
  for (const auto& [slot, one] : registered_) call(one.worker, slot.model);
  on_added_.push_back(std::move(call));
}

void Fleet::on_gone(OnGone gone) { on_gone_.push_back(std::move(gone)); }

}  // namespace baton::fleet
