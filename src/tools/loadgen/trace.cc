// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/trace.h"

#include "tools/loadgen/draw.h"
#include "wire/json_array.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

namespace baton::loadgen {
namespace {

constexpr std::uint32_t kLongestInput = 10'000'000;
constexpr std::uint32_t kLongestOutput = 1'000'000;

template <class Number>
std::optional<Number> number_of(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  Number number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

Result<TraceRequest> parse_line(std::string_view line, std::uint32_t block) {
  const auto object = wire::JsonObject::parse(line);
  if (!object) return fail(object.error());
  const auto missing = [](std::string_view key, std::string_view what) {
    return fail(Errc::InvalidRequest, fmt::format("'{}' must be there and be {}", key, what));
  };
  TraceRequest request;
  const auto at = number_of<double>(object->find("timestamp"));
  if (!at || !std::isfinite(*at) || *at < 0) return missing("timestamp", "milliseconds from 0");
  request.at_ms = *at;
  const auto input = number_of<std::uint32_t>(object->find("input_length"));
  if (!input || *input == 0 || *input > kLongestInput)
    return missing("input_length", "a number of tokens from 1");
  request.input_length = *input;
  const auto output = number_of<std::uint32_t>(object->find("output_length"));
  if (!output || *output > kLongestOutput) return missing("output_length", "a number of tokens");
  request.output_length = std::max(*output, 1U);
  const auto ids = object->find("hash_ids");
  if (!ids || !ids->starts_with('[')) return missing("hash_ids", "a list of numbers");
  // More ids than blocks say nothing about the prompt.
  const std::size_t blocks = (std::size_t{request.input_length} + block - 1) / block;
  for (const std::string_view element : wire::elements(*ids, blocks)) {
    const auto id = number_of<std::int64_t>(element);
    if (!id) return missing("hash_ids", "a list of whole numbers");
    request.hash_ids.push_back(static_cast<std::uint64_t>(*id));
  }
  return request;
}

// By time, those of one time as they stand.
std::vector<TraceRequest> in_order(std::vector<TraceRequest> requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&requests](std::size_t i) { return std::pair(requests[i].at_ms, i); });
  const double first = requests[order.front()].at_ms;
  std::vector<TraceRequest> sorted;
  sorted.reserve(requests.size());
  for (const std::size_t i : order) {
    sorted.push_back(std::move(requests[i]));
    sorted.back().at_ms -= first;
  }
  return sorted;
}

}  // namespace

Result<std::vector<TraceRequest>> parse_trace(std::string_view text, std::uint32_t block) {
  std::vector<TraceRequest> requests;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto request = parse_line(line, block);
    if (!request) {
      return fail(Errc::InvalidRequest,
                  fmt::format("line {}: {}", number, request.error().message()));
    }
    if (requests.size() == kLongestTrace)
      return fail(Errc::InvalidRequest,
                  fmt::format("it has more than {} requests; cut it", kLongestTrace));
    requests.push_back(*std::move(request));
  }
  if (requests.empty()) return fail(Errc::InvalidRequest, "there is no request in it");
  return in_order(std::move(requests));
}

Result<std::vector<TraceRequest>> read_trace(const std::string& path, std::uint32_t block) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return fail(Errc::InvalidRequest, fmt::format("--trace: cannot read {}", path));
  auto trace = parse_trace(text, block);
  if (trace) return trace;
  return fail(Errc::InvalidRequest, fmt::format("--trace {}: {}", path, trace.error().message()));
}

std::vector<TraceRequest> make_trace(std::uint64_t requests, std::uint64_t seed) {
  struct Talk {
    std::uint32_t tokens = 0;
    std::vector<std::uint64_t> ids;
  };
  constexpr double kMeanGapMs = 294;
  constexpr std::size_t kOpenTalks = 64;
  constexpr std::uint32_t kLongest = 120'000;
  Draw draw(mixed({seed, 0x7261CE}));
  const auto lengthened = [&draw](double median, double deviation, std::uint32_t most) {
    const double length = median * std::exp(deviation * draw.normal());
    return static_cast<std::uint32_t>(std::clamp(length, 1.0, static_cast<double>(most)));
  };
  std::vector<Talk> talks;
  std::vector<TraceRequest> made;
  std::uint64_t next_id = 1;  // 0 is the block that all prompts begin with
  double at_ms = 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(requests, kLongestTrace); ++i) {
    const bool goes_on = !talks.empty() && draw.chance(0.45);
    if (!goes_on) {
      if (talks.size() == kOpenTalks) talks.erase(talks.begin());
      talks.push_back({.tokens = kTraceBlock, .ids = {0}});
    }
    Talk& talk = goes_on ? talks[draw.below(talks.size())] : talks.back();
    // The last block was cut short, so it is another one now.
    if (talk.tokens % kTraceBlock != 0) talk.ids.pop_back();
    const std::uint32_t said =
        goes_on ? lengthened(900, 1.2, 20'000) : lengthened(5'000, 1.1, 90'000);
    talk.tokens = std::min(talk.tokens + said, kLongest);
    const std::size_t blocks = (talk.tokens + kTraceBlock - 1) / kTraceBlock;
    talk.ids.resize(std::min(talk.ids.size(), blocks));
    while (talk.ids.size() < blocks) talk.ids.push_back(next_id++);
    made.push_back({.at_ms = at_ms,
                    .input_length = talk.tokens,
                    .output_length = lengthened(250, 0.8, 2'000),
                    .hash_ids = talk.ids});
    at_ms += draw.exponential(kMeanGapMs);
  }
  return made;
}

}  // namespace baton::loadgen
