// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/result.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

namespace baton::loadgen {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::nanoseconds;

// Microseconds are enough, and keep the file readable.
double rounded(double value) { return std::round(value * 1000) / 1000; }
double in_seconds(nanoseconds time) { return rounded(std::chrono::duration<double>(time).count()); }
double millis(nanoseconds time) {
  return rounded(std::chrono::duration<double, std::milli>(time).count());
}
Json share(double part, double whole) {
  if (whole == 0) return nullptr;
  return std::round(part / whole * 1e6) / 1e6;
}

template <class T>
Json maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json durations(const LogHistogram& times) {
  if (times.count() == 0) return {{"count", 0}};
  return {{"count", times.count()},
          {"mean", rounded(times.mean_ms())},
          {"min", rounded(times.least_ms())},
          {"p50", rounded(times.quantile_ms(0.5))},
          {"p90", rounded(times.quantile_ms(0.9))},
          {"p99", rounded(times.quantile_ms(0.99))},
          {"max", rounded(times.most_ms())}};
}

Json workload_json(const WorkloadOptions& workload) {
  Json json{{"kind", to_string(workload.kind)}, {"seed", workload.seed}};
  if (workload.kind == WorkloadKind::Trace) {
    json["trace"] = workload.trace_file.empty() ? Json("made up") : Json(workload.trace_file);
    json["time_scale"] = workload.time_scale;
    return json;
  }
  switch (workload.kind) {
    case WorkloadKind::SharedPrefix:
      json["prefix_tokens"] = workload.prefix_tokens;
      json["groups"] = workload.groups;
      json["input_tokens"] = workload.input_tokens;
      break;
    case WorkloadKind::MultiTurn:
      json["prefix_tokens"] = workload.prefix_tokens;
      json["turns"] = workload.turns;
      json["think_time_s"] = in_seconds(workload.think_time);
      json["input_tokens"] = workload.input_tokens;
      break;
    case WorkloadKind::HotDocument:
      json["document_tokens"] = workload.document_tokens;
      json["hot_share"] = workload.hot_share;
      json["other_tokens"] = workload.other_tokens;
      json["input_tokens"] = workload.input_tokens;
      break;
    case WorkloadKind::LongShort:
      json["long_tokens"] = workload.long_tokens;
      json["short_tokens"] = workload.short_tokens;
      json["long_share"] = workload.long_share;
      break;
    case WorkloadKind::Distinct:
    case WorkloadKind::Trace:
      json["input_tokens"] = workload.input_tokens;
      break;
  }
  json["output_tokens"] = workload.output_tokens;
  json["spread"] = workload.spread;
  return json;
}

Json configuration_json(const Plan& plan, const Outcome& outcome) {
  const Options& options = plan.options;
  const bool trace = options.workload.kind == WorkloadKind::Trace;
  return {{"url", options.url},
          {"model", outcome.model},
          {"api", to_string(options.api)},
          {"prompt", to_string(plan.prompt)},
          {"workload", workload_json(options.workload)},
          {"loop", plan.open_loop ? "open" : "closed"},
          {"concurrency", maybe(options.concurrency)},
          {"rate", maybe(options.rate)},
          {"arrivals",
           trace ? Json("trace") : (plan.open_loop ? Json(to_string(options.arrivals)) : Json())},
          {"requests", maybe(plan.requests)},
          {"duration_s", plan.duration ? Json(in_seconds(*plan.duration)) : Json()},
          {"warmup_requests", plan.warmup_requests},
          {"warmup_s", in_seconds(plan.warmup_time)},
          {"timeout_s", in_seconds(options.timeout)},
          {"max_in_flight", options.max_in_flight},
          {"threads", options.threads},
          {"slo_ttft_ms", maybe(options.slo_ttft_ms)},
          {"slo_itl_ms", maybe(options.slo_itl_ms)}};
}

Json summary_json(const Outcome& outcome) {
  const Tally& tally = outcome.tally;
  const nanoseconds begin = tally.first_sent.value_or(nanoseconds(0));
  const double window =
      std::chrono::duration<double>(std::max(tally.last_end - begin, nanoseconds(0))).count();
  const auto per_second = [window](std::uint64_t count) {
    return window > 0 ? rounded(static_cast<double>(count) / window) : 0;
  };
  const std::uint64_t judged = tally.completed + tally.refused + tally.failed + tally.skipped;
  Json goodput;
  if (tally.target().given()) {
    goodput = {{"good", tally.good},
               {"requests_per_s", per_second(tally.good)},
               {"share", share(static_cast<double>(tally.good), static_cast<double>(judged))}};
  }
  return {{"measured_from_s", in_seconds(begin)},
          {"measured_s", rounded(window)},
          {"elapsed_s", in_seconds(outcome.elapsed)},
          {"interrupted", outcome.interrupted},
          {"requests",
           {{"sent", tally.all_sent},
            {"warmup", tally.warmup},
            {"completed", tally.completed},
            {"refused", tally.refused},
            {"refused_with_retry_after", tally.refused_with_retry_after},
            {"failed", tally.failed},
            {"cut", tally.cut},
            {"not_sent", tally.skipped}}},
          {"requests_per_s", per_second(tally.completed)},
          {"output_tokens_per_s", per_second(tally.output_tokens)},
          {"prompt_tokens_per_s", per_second(tally.prompt_tokens)},
          {"output_tokens", tally.output_tokens},
          {"prompt_tokens", tally.prompt_tokens},
          {"cached_tokens", tally.with_cached > 0 ? Json(tally.cached_tokens) : Json()},
          {"hit_rate", share(static_cast<double>(tally.cached_tokens),
                             static_cast<double>(tally.cacheable_tokens))},
          {"ttft_ms", durations(tally.ttft)},
          {"itl_ms", durations(tally.itl)},
          {"total_ms", durations(tally.total)},
          {"refused_ms", durations(tally.refusal)},
          {"send_lateness_ms", durations(tally.lateness)},
          {"goodput", goodput},
          {"errors", tally.errors}};
}

Json series_json(const Series& series) {
  Json points = Json::array();
  const auto width = static_cast<double>(series.width().count());
  double at = 0;
  for (const Moment& moment : series.moments()) {
    Json point{{"t", at},
               {"sent", moment.sent},
               {"completed", moment.completed},
               {"refused", moment.refused},
               {"failed", moment.failed},
               {"output_tokens", moment.output_tokens}};
    if (moment.ttft.count() > 0) {
      point["ttft_p50"] = rounded(moment.ttft.quantile_ms(0.5));
      point["ttft_p99"] = rounded(moment.ttft.quantile_ms(0.99));
    }
    if (moment.itl.count() > 0) {
      point["itl_p50"] = rounded(moment.itl.quantile_ms(0.5));
      point["itl_p99"] = rounded(moment.itl.quantile_ms(0.99));
    }
    if (moment.prompt_tokens > 0) {
      point["hit_rate"] = share(static_cast<double>(moment.cached_tokens),
                                static_cast<double>(moment.prompt_tokens));
    }
    points.push_back(std::move(point));
    at += width;
  }
  return {{"width_s", series.width().count()}, {"points", std::move(points)}};
}

Json workers_json(const Outcome& outcome) {
  auto workers = outcome.tally.workers;
  // Workers without requests count as well.
  for (const auto& known : outcome.known_workers) workers.try_emplace(known);
  Json list = Json::array();
  for (const auto& [who, load] : workers) {
    list.push_back(
        {{"role", who.first},
         {"name", who.second},
         {"requests", load.requests},
         {"prompt_tokens", load.prompt_tokens},
         {"cached_tokens", load.cached_tokens},
         {"computed_tokens", load.prompt_tokens - std::min(load.prompt_tokens, load.cached_tokens)},
         {"output_tokens", load.output_tokens}});
  }
  return list;
}

// How much more the busiest worker of a role did than the average one: 1 is even.
Json balance_json(const Json& workers) {
  Json balance = Json::object();
  for (const char* role : {"prefill", "decode"}) {
    Json by_field = Json::object();
    for (const char* field : {"requests", "computed_tokens", "output_tokens"}) {
      double most = 0;
      double sum = 0;
      double count = 0;
      for (const Json& worker : workers) {
        if (worker["role"] != role) continue;
        const auto load = worker[field].get<double>();
        most = std::max(most, load);
        sum += load;
        ++count;
      }
      if (sum > 0)
        by_field[field] = {{"max", most},
                           {"mean", rounded(sum / count)},
                           {"max_over_mean", rounded(most * count / sum)}};
    }
    if (!by_field.empty()) balance[role] = std::move(by_field);
  }
  return balance;
}

Json histogram_json(const LogHistogram& times) {
  Json list = Json::array();
  for (const auto& bucket : times.buckets())
    list.push_back({rounded(bucket.below_ms), bucket.count});
  return list;
}

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::Completed:
      return "completed";
    case Ending::Refused:
      return "refused";
    case Ending::Failed:
      return "failed";
    case Ending::Cut:
      break;
  }
  return "cut";
}

Json samples_json(std::vector<RequestRecord> samples) {
  std::ranges::sort(samples, {}, &RequestRecord::sent);
  Json list = Json::array();
  for (const RequestRecord& request : samples) {
    Json sample{{"t", in_seconds(request.sent)},
                {"ending", to_string(request.ending)},
                {"total_ms", millis(request.ended - request.sent)},
                {"prompt_tokens", request.prompt_tokens},
                {"output_tokens", request.output_tokens}};
    if (const auto ttft = request.ttft()) sample["ttft_ms"] = millis(*ttft);
    if (const auto gap = request.mean_gap()) sample["itl_ms"] = millis(*gap);
    if (request.cached_tokens) sample["cached_tokens"] = *request.cached_tokens;
    if (!request.error.empty()) sample["error"] = request.error;
    if (!request.prefill_worker.empty()) sample["prefill_worker"] = request.prefill_worker;
    if (!request.decode_worker.empty()) sample["decode_worker"] = request.decode_worker;
    list.push_back(std::move(sample));
  }
  return list;
}

// Columns, so that a name is not repeated every second.
Json fleet_json(const FleetHistory& fleet) {
  if (fleet.moments().empty()) return nullptr;
  Json times = Json::array();
  Json hits = Json::array();
  std::map<std::string, std::map<std::pair<std::string, std::string>, Json>> gauges;
  for (const FleetMoment& moment : fleet.moments()) {
    for (const auto& [gauge, workers] : moment.gauges) {
      for (const auto& [who, value] : workers) gauges[gauge].try_emplace(who, Json::array());
    }
  }
  // Without KV events nothing is reported, which is not the same as no hits.
  const bool reported =
      fleet.moments().back().reported_cached > fleet.moments().front().reported_cached;
  const FleetMoment* before = nullptr;
  for (const FleetMoment& moment : fleet.moments()) {
    times.push_back(rounded(moment.at_seconds));
    const double prompt = before ? moment.prompt_tokens - before->prompt_tokens : 0;
    const double cached = before ? moment.reported_cached - before->reported_cached : 0;
    hits.push_back(reported && prompt > 0 && cached >= 0 ? share(cached, prompt) : Json());
    before = &moment;
    for (auto& [gauge, workers] : gauges) {
      const auto said = moment.gauges.find(gauge);
      for (auto& [who, column] : workers) {
        if (said == moment.gauges.end() || !said->second.contains(who)) {
          column.push_back(nullptr);
        } else {
          column.push_back(said->second.at(who));
        }
      }
    }
  }
  Json out{{"t", std::move(times)}, {"hit_rate", std::move(hits)}, {"gauges", Json::object()}};
  for (auto& [gauge, workers] : gauges) {
    Json list = Json::array();
    for (auto& [who, column] : workers)
      list.push_back({{"role", who.first}, {"name", who.second}, {"values", std::move(column)}});
    out["gauges"][gauge] = std::move(list);
  }
  return out;
}

}  // namespace

Json result_json(const Plan& plan, const Outcome& outcome) {
  const Tally& tally = outcome.tally;
  Json workers = workers_json(outcome);
  Json balance = balance_json(workers);
  return {{"format", kFormat},
          {"version", kFormatVersion},
          {"label", plan.options.label.empty() ? std::string(to_string(plan.options.workload.kind))
                                               : plan.options.label},
          {"started_at",
           fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(outcome.started_at)))},
          {"configuration", configuration_json(plan, outcome)},
          {"summary", summary_json(outcome)},
          {"workers", std::move(workers)},
          {"balance", std::move(balance)},
          {"series", series_json(tally.series)},
          {"histograms",
           {{"ttft_ms", histogram_json(tally.ttft)},
            {"itl_ms", histogram_json(tally.itl)},
            {"total_ms", histogram_json(tally.total)}}},
          {"samples", samples_json(tally.samples())},
          {"fleet", fleet_json(outcome.fleet)}};
}

Result<Json> read_result(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return fail(Errc::InvalidRequest, fmt::format("cannot read {}", path));
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != kFormat) {
    return fail(
        Errc::InvalidRequest,
        fmt::format("{} is no result of baton bench; make one with --output FILE.json", path));
  }
  if (json.value("version", Json()) != kFormatVersion) {
    return fail(
        Errc::InvalidRequest,
        fmt::format("{} was written by another version of baton bench; run it again", path));
  }
  return json;
}

}  // namespace baton::loadgen
