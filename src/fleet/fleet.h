// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "fleet/model.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::fleet {

// Role. Who serves what.
// Confinement. Any thread; built before serving starts and not changed since.
// Lifetime. Owned by App, outlives every request.
class Fleet {
 public:
  Fleet(const config::Config& config, telemetry::Registry& metrics, telemetry::Logger& log);

  // By name or alias; null where nobody serves it.
  Model* find(std::string_view name);
  // By name, host:port or number; null where there is none. A server of several models is several
  // workers: the one of the first model.
  Worker* find_worker(std::string_view name) const;
  const std::vector<std::unique_ptr<Model>>& models() const { return models_; }

 private:
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::unique_ptr<Model>> models_;
  std::unordered_map<std::string, Model*, NameHash, std::equal_to<>> by_name_;
};

}  // namespace baton::fleet
