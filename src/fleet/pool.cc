// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/pool.h"

#include <utility>

namespace baton::fleet {
namespace {

// Null if the policy makes no forecasts.
std::shared_ptr<Forecasts> forecasts_of(const config::Model& model, const std::string& name_space,
                                        model::Role role, model::Policy policy,
                                        telemetry::Registry& metrics, telemetry::Logger& log) {
  if (policy != model::Policy::Ttft) return nullptr;
  return std::make_shared<Forecasts>(model.name, name_space, role, metrics, log);
}

}  // namespace

Pool::Pool(const config::Model& model, std::string name_space, telemetry::Registry& metrics,
           telemetry::Logger& log, std::shared_ptr<LoadNotifier> load_notifier)
    : model_(model.name),
      name_(std::move(name_space)),
      disaggregation_(model.disaggregation),
      metrics_(metrics),
      log_(log),
      load_notifier_(std::move(load_notifier)),
      prefill_(model::Role::Prefill, model.prefill_policy.value_or(model.policy),
               model.routing.cost, load_notifier_,
               forecasts_of(model, name_, model::Role::Prefill,
                            model.prefill_policy.value_or(model.policy), metrics, log)),
      decode_(model::Role::Decode, model.decode_policy.value_or(model.policy), model.routing.cost,
              load_notifier_, nullptr, model.routing.least_itl()),
      aggregated_(model::Role::Aggregated, model.policy, model.routing.cost, load_notifier_,
                  forecasts_of(model, name_, model::Role::Aggregated, model.policy, metrics, log),
                  model.routing.least_itl()),
      lifecycle_(model_, name_, prefill_, log) {}

void Pool::add(const std::shared_ptr<Worker>& worker) {
  worker->watched_by(weak_from_this());
  workers(worker->spec().role).add(worker);
  lifecycle_.observe();
}

void Pool::remove(const Worker& worker) {
  workers(worker.spec().role).remove(worker);
  lifecycle_.observe();
}

WorkerSet& Pool::workers(model::Role role) {
  switch (role) {
    case model::Role::Prefill:
      return prefill_;
    case model::Role::Decode:
      return decode_;
    case model::Role::Aggregated:
      break;
  }
  return aggregated_;
}

const WorkerSet& Pool::workers(model::Role role) const {
  return const_cast<Pool*>(this)->workers(role);
}

std::shared_ptr<Worker> Pool::find_worker(std::string_view name) const {
  for (const WorkerSet* const set : {&prefill_, &decode_, &aggregated_}) {
    if (auto worker = set->find(name)) return worker;
  }
  return nullptr;
}

bool Pool::disaggregated() const {
  return disaggregation_ != model::Disaggregation::Off && !prefill_.empty() && !decode_.empty();
}

std::string Pool::why_not_ready() const {
  if (decode_.empty() && aggregated_.empty()) {
    return prefill_.empty() ? "it has no workers" : "it has prefill workers but no decode worker";
  }
  if (disaggregation_ == model::Disaggregation::Required) {
    if (!decode_.any_available()) return "disaggregation is required, and no decode worker is up";
    if (prefill_.empty()) return "disaggregation is required, and there is no prefill worker";
    switch (prefill_state()) {
      case PrefillState::Pending:
        return "disaggregation is required, and no prefill worker has been heard of yet";
      case PrefillState::Unavailable:
        return "disaggregation is required, and every prefill worker is down";
      case PrefillState::Active:
        return "";
    }
  }
  if (!decode_.any_available() && !aggregated_.any_available()) return "every worker is down";
  return "";
}

void Pool::changed(const Worker& worker, const Health::Change& change) {
  report(worker, to_string(change.from), to_string(change.to), change.why);
  lifecycle_.observe();
  load_notifier_->ring();
}

void Pool::report(const Worker& worker, std::string_view to, std::string_view why) {
  report(worker, "", to, why);
  lifecycle_.observe();
}

void Pool::report(const Worker& worker, std::string_view from, std::string_view to,
                  std::string_view why) {
  const std::string_view role = model::to_string(worker.spec().role);
  metrics_
      .counter("baton_worker_changes_total", "What has become of workers.",
               {{"model", model_}, {"role", std::string(role)}, {"to", std::string(to)}})
      .add();
  using Value = decltype(telemetry::Field::value);
  const auto text = [](std::string_view known) { return known.empty() ? Value() : Value(known); };
  // Whatever has a reason is bad news.
  log_.write(why.empty() ? telemetry::Level::Info : telemetry::Level::Warning, "worker_changed",
             {{"model", model_},
              {"namespace", name_},
              {"worker", worker.name()},
              {"number", static_cast<std::int64_t>(worker.id().value)},
              {"role", role},
              {"from", text(from)},
              {"to", to},
              {"reason", text(why)},
              {"in_flight", worker.in_flight()}});
}

}  // namespace baton::fleet
