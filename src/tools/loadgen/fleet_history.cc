// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/fleet_history.h"

#include "wire/json_array.h"
#include "wire/json_object.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace baton::loadgen {
namespace {

constexpr std::string_view kWorkerGauge = "baton_worker_";
constexpr std::size_t kMostGauges = 8;
constexpr std::size_t kMostWorkers = 1024;

struct Sample {
  std::string_view name;
  std::string_view labels;
  double value = 0;
};

std::optional<Sample> parse_sample(std::string_view line) {
  if (line.empty() || line.front() == '#') return std::nullopt;
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos) return std::nullopt;
  Sample sample;
  const std::string_view number = line.substr(space + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), sample.value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view series = line.substr(0, space);
  const std::size_t brace = std::min(series.find('{'), series.size());
  sample.name = series.substr(0, brace);
  if (brace < series.size()) sample.labels = series.substr(brace + 1);
  return sample;
}

// Workers and roles hold no quotes: their names stand in headers.
std::string label_of(std::string_view labels, std::string_view name) {
  const std::string sign = std::string(name) + "=\"";
  const std::size_t begin = labels.find(sign);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = labels.substr(begin + sign.size());
  return std::string(rest.substr(0, rest.find('"')));
}

}  // namespace

FleetMoment read_metrics(std::string_view page, double at_seconds) {
  FleetMoment moment{.at_seconds = at_seconds, .gauges = {}};
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const auto sample = parse_sample(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    if (!sample) continue;
    if (sample->name == "baton_prompt_tokens_total") moment.prompt_tokens += sample->value;
    if (sample->name == "baton_kv_reported_tokens") moment.reported_cached += sample->value;
    if (!sample->name.starts_with(kWorkerGauge) || sample->name.ends_with("_total")) continue;
    const std::string worker = label_of(sample->labels, "worker");
    if (worker.empty()) continue;
    const std::string gauge(sample->name.substr(kWorkerGauge.size()));
    if (moment.gauges.size() == kMostGauges && !moment.gauges.contains(gauge)) continue;
    auto& workers = moment.gauges[gauge];
    if (workers.size() < kMostWorkers)
      workers[{label_of(sample->labels, "role"), worker}] += sample->value;
  }
  return moment;
}

std::vector<std::pair<std::string, std::string>> read_workers(std::string_view answer,
                                                              std::string_view model) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto object = wire::JsonObject::parse(answer);
  const auto list = object ? object->find("workers") : std::nullopt;
  if (!list) return found;
  for (const std::string_view element : wire::elements(*list, kMostWorkers)) {
    const auto worker = wire::JsonObject::within(element);
    const auto name = worker ? worker->find_string("name") : std::nullopt;
    if (!name || worker->find_string("model") != model) continue;
    const bool prefill = worker->find_string("role") == "prefill";
    found.emplace_back(prefill ? "prefill" : "decode", *name);
  }
  return found;
}

void FleetHistory::add(FleetMoment moment) {
  if (offered_++ % stride_ != 0) return;
  moments_.push_back(std::move(moment));
  if (moments_.size() < kMost) return;
  for (std::size_t i = 0; i < kMost / 2; ++i) moments_[i] = std::move(moments_[2 * i]);
  moments_.resize(kMost / 2);
  stride_ *= 2;
}

}  // namespace baton::loadgen
