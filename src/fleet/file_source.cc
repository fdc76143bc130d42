// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/file_source.h"

#include "config/reload.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace baton::fleet {
namespace {

telemetry::Counter& reloads(telemetry::Registry& metrics, std::string outcome) {
  return metrics.counter("baton_config_reloads_total",
                         "Times the configuration file was read again.",
                         {{"outcome", std::move(outcome)}});
}

}  // namespace

FileSource::FileSource(boost::asio::io_context& io, Fleet& fleet, config::Config current,
                       std::string path, Load load, telemetry::Registry& metrics,
                       telemetry::Logger& log)
    : fleet_(fleet),
      current_(std::move(current)),
      path_(std::move(path)),
      load_(std::move(load)),
      log_(log),
      taken_(reloads(metrics, "taken")),
      refused_(reloads(metrics, "refused")),
      stale_(
          metrics.gauge("baton_config_stale",
                        "1 while the configuration file cannot be used and an older one holds.")),
      watch_(io, path_, [this] { reload(); }) {}

void FileSource::start() {
  if (const auto started = watch_.start(); !started)
    log_.warning("config_watch", {{"file", path_}, {"error", started.error().message()}});
  reload();  // it may have changed since it was first read
}

void FileSource::reload() {
  auto read = load_();
  if (!read) return refuse(read.error());
  problem_.clear();
  stale_.set(0);
  if (*read == current_) return;
  const auto waiting = config::needs_restart(current_, *read);
  fleet_.configure(read->models);
  // Settings that need a restart stay, and are reported as long as they differ.
  current_.models = std::move(read->models);
  taken_.add();
  log_.info("config_reloaded",
            {{"file", path_}, {"models", static_cast<std::int64_t>(current_.models.size())}});
  if (waiting.empty()) return;
  log_.warning("config_needs_restart",
               {{"file", path_}, {"keys", fmt::format("{}", fmt::join(waiting, ", "))}});
}

void FileSource::refuse(const std::vector<config::Problem>& problems) {
  refused_.add();
  stale_.set(1);
  for (const config::Problem& problem : problems)
    log_.error("config_refused", {{"problem", problem.to_string()}});
  problem_ = fmt::format("what was read before holds; {}", problems.front().to_string());
  if (problems.size() > 1) problem_ += fmt::format(" (and {} more)", problems.size() - 1);
}

}  // namespace baton::fleet
