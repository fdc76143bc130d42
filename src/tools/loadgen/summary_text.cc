// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/result.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>

namespace baton::loadgen {
namespace {

using Json = nlohmann::ordered_json;

std::string durations(const Json& times) {
  if (times.at("count") == 0) return "-";
  return fmt::format("p50 {:.1f}   p90 {:.1f}   p99 {:.1f}   mean {:.1f}   max {:.1f} ms",
                     times.at("p50").get<double>(), times.at("p90").get<double>(),
                     times.at("p99").get<double>(), times.at("mean").get<double>(),
                     times.at("max").get<double>());
}

std::string percent(const Json& share) {
  return share.is_null() ? "not told" : fmt::format("{:.1f} %", share.get<double>() * 100);
}

}  // namespace

std::string summary_text(const Json& result) {
  const Json& summary = result.at("summary");
  const Json& requests = summary.at("requests");
  std::string text;
  const auto row = [&text](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{:<18}{}\n", name, value);
  };
  row("requests",
      fmt::format("{} completed, {} refused, {} failed of {} sent in {:.1f} s",
                  requests.at("completed").get<std::uint64_t>(),
                  requests.at("refused").get<std::uint64_t>(),
                  requests.at("failed").get<std::uint64_t>(),
                  requests.at("sent").get<std::uint64_t>(), summary.at("elapsed_s").get<double>()));
  for (const auto& [key, name] : {std::pair{"warmup", "not counted: warm-up"},
                                  {"cut", "cut short at the end"},
                                  {"not_sent", "not sent: --max-in-flight reached"}}) {
    if (requests.at(key) != 0)
      row("", fmt::format("{} {}", requests.at(key).get<std::uint64_t>(), name));
  }
  for (const auto& [kind, count] : summary.at("errors").items())
    row("", fmt::format("{} × {}", count.get<std::uint64_t>(), kind));
  row("throughput",
      fmt::format("{:.2f} requests/s   {:.0f} output tokens/s   {:.0f} prompt tokens/s",
                  summary.at("requests_per_s").get<double>(),
                  summary.at("output_tokens_per_s").get<double>(),
                  summary.at("prompt_tokens_per_s").get<double>()));
  row("TTFT", durations(summary.at("ttft_ms")));
  row("ITL", durations(summary.at("itl_ms")));
  row("total", durations(summary.at("total_ms")));
  if (requests.at("refused") != 0) row("refused in", durations(summary.at("refused_ms")));
  row("cache hits", percent(summary.at("hit_rate")));
  if (const Json& goodput = summary.at("goodput"); !goodput.is_null()) {
    row("goodput",
        fmt::format("{:.2f} requests/s   {} met the target",
                    goodput.at("requests_per_s").get<double>(), percent(goodput.at("share"))));
  }
  for (const auto& [role, fields] : result.at("balance").items()) {
    std::string line;
    for (const auto& [field, load] : fields.items()) {
      if (!line.empty()) line += "   ";
      fmt::format_to(std::back_inserter(line), "{} {:.2f}", field,
                     load.at("max_over_mean").get<double>());
    }
    row(role + " max/mean", line);
  }
  if (result.at("configuration").at("loop") == "open") {
    row("sent late", durations(summary.at("send_lateness_ms")));
  }
  return text;
}

}  // namespace baton::loadgen
