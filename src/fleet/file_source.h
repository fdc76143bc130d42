// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/load.h"
#include "fleet/fleet.h"
#include "fleet/source.h"
#include "net/file_watch.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <boost/asio/io_context.hpp>

#include <expected>
#include <functional>
#include <string>
#include <vector>

namespace baton::fleet {

// Role. The configuration file, read again whenever it changes or on request.
// Confinement. The control thread.
// Invariants. A file that cannot be used changes nothing, and is reported until a good one is
//   there. Models and workers follow the file at once; changes of other keys are reported to need a
//   restart.
class FileSource final : public Source {
 public:
  // Loads the file, with the additions of the command line.
  using Load = std::function<std::expected<config::Config, std::vector<config::Problem>>()>;

  // `current` is what the fleet was made from.
  FileSource(boost::asio::io_context& io, Fleet& fleet, config::Config current, std::string path,
             Load load, telemetry::Registry& metrics, telemetry::Logger& log);

  void start() override;
  void stop() override { watch_.stop(); }
  SourceStatus status() const override { return {Origin::File, problem_.empty(), problem_}; }
  void reload();

 private:
  void refuse(const std::vector<config::Problem>& problems);

  Fleet& fleet_;
  config::Config current_;  // in effect
  const std::string path_;
  const Load load_;
  telemetry::Logger& log_;
  telemetry::Counter& taken_;
  telemetry::Counter& refused_;
  telemetry::Gauge& stale_;
  std::string problem_;  // of the file as it is now
  net::FileWatch watch_;
};

}  // namespace baton::fleet
