// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::fleet {

inline std::uint64_t no_dice() { return 0; }

inline model::WorkerSpec worker(std::uint16_t port, model::Role role) {
  model::WorkerSpec spec;
  spec.endpoint = {"127.0.0.1", port};
  spec.role = role;
  return spec;
}

inline std::shared_ptr<Worker> make_worker(std::uint64_t id, model::WorkerSpec spec) {
  return std::make_shared<Worker>(model::WorkerId{id}, std::move(spec), config::Health{});
}

inline std::size_t occurrences(const std::string& text, std::string_view wanted) {
  std::size_t count = 0;
  for (auto at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) ++count;
  return count;
}

// A fleet of models given one by one, built at the first look.
struct FleetTest : testing::Test {
  config::Model& add_model(std::string name, std::vector<model::WorkerSpec> workers) {
    config::Model& model = config.models.emplace_back();
    model.policy = model::Policy::RoundRobin;  // so that a test knows who is next
    model.name = std::move(name);
    model.workers = std::move(workers);
    return model;
  }
  Fleet& fleet() {
    if (!fleet_) fleet_ = std::make_unique<Fleet>(config, metrics, log);
    return *fleet_;
  }
  Model& model(std::string_view name = "m") { return *fleet().find(name); }
  // The pool of a model that has workers in one namespace at most.
  Pool& pool(std::string_view name = "m") { return *model(name).choose({}, no_dice); }
  WorkerSet& workers(model::Role role) { return pool().workers(role); }
  // By name, host:port or number.
  Worker& worker_called(std::string_view name) { return *fleet().find_worker(name); }

  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};

 private:
  std::unique_ptr<Fleet> fleet_;
};

}  // namespace baton::fleet
