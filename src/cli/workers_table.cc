// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/workers_table.h"

#include "cli/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

namespace baton::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kColumns = 11;
constexpr std::size_t kState = 6;
constexpr std::size_t kInFlight = 7;
constexpr std::array<std::string_view, kColumns> kTitles{
    "MODEL", "NAMESPACE", "ROLE",         "NO",    "WORKER", "ENGINE",
    "STATE", "IN FLIGHT", "LAST SUCCESS", "CACHE", "REASON"};
constexpr std::string_view kColumnGap = "  ";
constexpr std::size_t kLeastReason = 12;

using Row = std::array<std::string, kColumns>;

std::string ago(const Json& seconds) {
  if (!seconds.is_number()) return "never";
  const auto whole = static_cast<std::int64_t>(seconds.get<double>());
  if (whole < 1) return "now";
  if (whole < 120) return fmt::format("{} s ago", whole);
  if (whole < 2 * 60 * 60) return fmt::format("{} min ago", whole / 60);
  return fmt::format("{} h ago", whole / 60 / 60);
}

// 999, 1.2k, 15k, 3.4M.
std::string short_count(std::uint64_t count) {
  constexpr std::uint64_t kThousand = 1'000;
  constexpr std::uint64_t kMillion = 1'000'000;
  constexpr std::uint64_t kTenths = 10;
  if (count < kThousand) return std::to_string(count);
  const auto [unit, sign] = count < kMillion ? std::pair(kThousand, 'k') : std::pair(kMillion, 'M');
  // Rounded down, so that the count is never exaggerated.
  const std::uint64_t whole = count / unit;
  if (whole >= kTenths) return fmt::format("{}{}", whole, sign);
  return fmt::format("{}.{}{}", whole, count % unit * kTenths / unit, sign);
}

// The source of its KV cache's contents, with a mark if something is wrong.
std::string cache_of(const Json& cache) {
  if (!cache.is_object()) return "off";
  const std::string source = cache.at("source");
  const std::string feed = cache.at("feed");
  if (feed == "silent" || feed == "unreachable" || feed == "mixed" || feed == "broken")
    return feed + "!";
  if (source == "events")
    return fmt::format("events {}", short_count(cache.at("blocks").get<std::uint64_t>()));
  if (source == "decisions") return source;
  // No source is trusted: the events are wrong, or have not come yet.
  return feed == "live" ? "wrong!" : plain(feed);
}

// The reason of its state or, if the state needs none, the reason why its KV events do not count.
std::string reason_of(const Json& worker, const Json& cache) {
  const Json& state = worker.at("reason");
  if (state.is_string()) return plain(state);
  const Json feed = cache.is_object() ? cache.value("reason", Json()) : Json();
  return feed.is_string() ? plain(feed) : std::string();
}

Row row_of(const Json& worker) {
  const Json cache = worker.value("kv_cache", Json());
  return {plain(worker.at("model")),
          plain(worker.at("namespace")),
          plain(worker.at("role")),
          std::to_string(worker.at("number").get<std::uint64_t>()),
          plain(worker.at("name")),
          plain(worker.at("engine")),
          plain(worker.at("state")),
          std::to_string(worker.at("in_flight").get<std::int64_t>()),
          ago(worker.at("last_success_seconds_ago")),
          cache_of(cache),
          reason_of(worker, cache)};
}

std::string_view colour_of(std::string_view state) {
  if (state == "ready") return "\x1b[32m";
  if (state == "unreachable" || state == "ejected" || state == "misconfigured") return "\x1b[31m";
  return "\x1b[33m";
}

void cut(std::string& text, std::size_t room) {
  if (text.size() <= room) return;
  text.resize(room - 3);
  // Not in the middle of a character.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U)
    text.pop_back();
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0U) text.pop_back();
  text += "...";
}

std::string line_of(const Row& row, const std::array<std::size_t, kColumns>& widths, bool colour) {
  std::string line;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const std::string cell = i == kInFlight ? fmt::format("{:>{}}", row[i], widths[i])
                                            : fmt::format("{:<{}}", row[i], widths[i]);
    if (i > 0) line += kColumnGap;
    if (colour && i == kState) {
      line += fmt::format("{}{}\x1b[0m", colour_of(row[i]), cell);
    } else {
      line += cell;
    }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string table_of(std::vector<Row> rows, TableStyle style) {
  if (rows.empty()) return "There are no workers.\n";
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return std::tie(a[0], a[1], a[2], a[4], a[3]) < std::tie(b[0], b[1], b[2], b[4], b[3]);
  });
  std::array<std::size_t, kColumns> widths{};
  Row titles;
  for (std::size_t i = 0; i < kColumns; ++i) {
    titles[i] = kTitles[i];
    widths[i] = titles[i].size();
    for (const Row& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  std::size_t& reason = widths.back();
  if (style.width > 0) {
    std::size_t others = (kColumns - 1) * kColumnGap.size();
    for (std::size_t i = 0; i + 1 < kColumns; ++i) others += widths[i];
    reason = std::min(reason, std::max(kLeastReason, style.width - std::min(style.width, others)));
  }
  std::string table = line_of(titles, widths, false);
  std::map<std::string, int> states;
  for (Row& row : rows) {
    cut(row.back(), reason);
    ++states[row[kState]];
    table += line_of(row, widths, style.colour);
  }
  std::string counts;
  for (const auto& [state, count] : states)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, state);
  return table +
         fmt::format("\n{} worker{}: {}\n", rows.size(), rows.size() == 1 ? "" : "s", counts);
}

}  // namespace

Result<std::string> workers_table(std::string_view json, TableStyle style) {
  try {
    const Json answer = Json::parse(json);
    std::vector<Row> rows;
    for (const Json& worker : answer.at("workers")) rows.push_back(row_of(worker));
    return table_of(std::move(rows), style);
  } catch (const Json::exception&) {
    return fail(Errc::EngineProtocol,
                "the answer is not that of a router's /workers: is it another version, or another "
                "program?");
  }
}

}  // namespace baton::cli
