// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

namespace baton::loadgen {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string_view name;
  const char* path;
  double factor = 1;
};
constexpr std::array kRows{
    Row{"completed", "/summary/requests/completed"},
    Row{"refused", "/summary/requests/refused"},
    Row{"failed", "/summary/requests/failed"},
    Row{"requests/s", "/summary/requests_per_s"},
    Row{"output tokens/s", "/summary/output_tokens_per_s"},
    Row{"goodput requests/s", "/summary/goodput/requests_per_s"},
    Row{"met the target %", "/summary/goodput/share", 100},
    Row{"cache hits %", "/summary/hit_rate", 100},
    Row{"TTFT p50 ms", "/summary/ttft_ms/p50"},
    Row{"TTFT p90 ms", "/summary/ttft_ms/p90"},
    Row{"TTFT p99 ms", "/summary/ttft_ms/p99"},
    Row{"TTFT mean ms", "/summary/ttft_ms/mean"},
    Row{"ITL p50 ms", "/summary/itl_ms/p50"},
    Row{"ITL p99 ms", "/summary/itl_ms/p99"},
    Row{"total p50 ms", "/summary/total_ms/p50"},
    Row{"total p99 ms", "/summary/total_ms/p99"},
    Row{"prefill max/mean", "/balance/prefill/computed_tokens/max_over_mean"},
    Row{"decode max/mean", "/balance/decode/output_tokens/max_over_mean"},
};
constexpr std::size_t kNameWidth = 20;
constexpr std::size_t kLeastColumn = 12;

std::string value_of(const Json& result, const Row& row) {
  const Json::json_pointer place(row.path);
  // A pointer into null throws where a missing key does not.
  const Json value = result.contains(place) ? result.at(place) : Json();
  if (!value.is_number()) return "-";
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  return fmt::format("{:.2f}", value.get<double>() * row.factor);
}

}  // namespace

std::string comparison_text(std::span<const Json> results) {
  std::vector<std::size_t> widths;
  std::string text(kNameWidth, ' ');
  for (const Json& result : results) {
    const std::string label = result.value("label", "");
    widths.push_back(std::max(kLeastColumn, label.size() + 2));
    fmt::format_to(std::back_inserter(text), "{:>{}}", label, widths.back());
  }
  text += '\n';
  for (const Row& row : kRows) {
    std::string line = fmt::format("{:<{}}", row.name, kNameWidth);
    bool told = false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string value = value_of(results[i], row);
      told = told || value != "-";
      fmt::format_to(std::back_inserter(line), "{:>{}}", value, widths[i]);
    }
    if (told) text += line + "\n";
  }
  return text;
}

}  // namespace baton::loadgen
