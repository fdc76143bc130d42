// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/decisions_api.h"

#include "api/request_fields.h"
#include "pipeline/choice_json.h"
#include "wire/json_object.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::api {
namespace {

using scheduling::Decided;

constexpr std::string_view kDecisions = "/v1/decisions";
constexpr std::string_view kDecisionsBelow = "/v1/decisions/";
constexpr std::size_t kUsualLimit = 100;
constexpr std::size_t kMostLimit = 1000;

std::string text_or_null(std::string_view text) {
  return text.empty() ? "null" : wire::json_quote(text);
}

template <class Number>
std::string number_or_null(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "null";
}

std::string milliseconds_json(std::chrono::nanoseconds time) {
  return fmt::format("{:.3f}", std::chrono::duration<double, std::milli>(time).count());
}

// RFC 3339, to the millisecond.
std::string time_json(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::floor<std::chrono::milliseconds>(time - whole);
  return fmt::format(R"("{:%Y-%m-%dT%H:%M:%S}.{:03}Z")",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), rest.count());
}

std::string_view name_of(scheduling::Part part) {
  switch (part) {
    case scheduling::Part::Prefill:
      return "prefill";
    case scheduling::Part::Decode:
      return "decode";
    case scheduling::Part::Both:
      break;
  }
  return "both";
}

std::string decision_json(const scheduling::Decision& decision) {
  return fmt::format(R"({{"part":"{}","attempt":{},"at":{},"given_back":{},"choice":{}}})",
                     name_of(decision.part), decision.attempt, time_json(decision.at),
                     text_or_null(decision.given_back), pipeline::choice_json(decision.choice));
}

std::string waited_json(const scheduling::Waited& waited) {
  return fmt::format(
      R"({{"policy_class":{},"ahead":{},"queued_ms":{},"followed_ms":{},"refused":{}}})",
      text_or_null(waited.policy_class), waited.ahead, milliseconds_json(waited.queued),
      milliseconds_json(waited.followed), text_or_null(waited.refused));
}

std::string outcome_json(const std::optional<scheduling::Outcome>& outcome) {
  if (!outcome) return "null";
  return fmt::format(
      R"({{"status":{},"error":{},"retries":{},"migrations":{},"prompt_tokens":{},"cached_tokens":{},"ttft_ms":{}}})",
      outcome->status, text_or_null(outcome->error), outcome->retries, outcome->migrations,
      number_or_null(outcome->prompt_tokens), number_or_null(outcome->cached_tokens),
      outcome->time_to_first_token ? milliseconds_json(*outcome->time_to_first_token) : "null");
}

std::string decided_json(const Decided& decided) {
  std::string decisions;
  for (const scheduling::Decision& decision : decided.decisions) {
    if (!decisions.empty()) decisions += ',';
    decisions += decision_json(decision);
  }
  return fmt::format(
      R"({{"object":"decision","request_id":{},"model":{},"begun":{},"prompt_tokens":{},"waited":{},"bypass":{},"decisions":[{}],"outcome":{}}})",
      wire::json_quote(decided.request_id), wire::json_quote(decided.model),
      time_json(decided.begun), decided.prompt_tokens, waited_json(decided.waited),
      text_or_null(decided.bypass), decisions, outcome_json(decided.outcome));
}

Error unknown(const scheduling::DecisionLog& log, std::string_view asked) {
  const std::string_view id = asked.substr(0, 128);  // no longer than any id
  if (log.most() == 0) {
    return {Errc::NotFound,
            "no request is remembered: set \"decisions\" in the configuration to how many are to "
            "be"};
  }
  const std::string branch = fmt::format("{}-0", id);
  if (log.find(branch)) {
    return {Errc::NotFound,
            fmt::format("the request was served as several, one for each choice: ask for {}, and "
                        "so on",
                        branch)};
  }
  return {Errc::NotFound,
          fmt::format("no request with the id {} is remembered; {} are, at most {}. The id is the "
                      "x-request-id of the answer; GET {} lists the latest. To remember more, set "
                      "\"decisions\" in the configuration",
                      id, log.size(), log.most(), kDecisions)};
}

Result<std::size_t> read_limit(std::string_view target) {
  std::optional<std::string> text;
  if (auto read = read_filters(target, std::array{Filter{"limit", &text}}); !read)
    return fail(std::move(read.error()));
  if (!text) return kUsualLimit;
  std::size_t limit = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, limit);
  if (stop != end || error != std::errc{} || limit == 0 || limit > kMostLimit) {
    return fail(Error(Errc::InvalidRequest,
                      fmt::format("limit must be a whole number from 1 to {}", kMostLimit))
                    .with_param("limit"));
  }
  return limit;
}

std::string list_json(const scheduling::DecisionLog& log, std::size_t limit) {
  std::string ids;
  for (const std::string& id : log.recent(limit)) {
    if (!ids.empty()) ids += ',';
    ids += wire::json_quote(id);
  }
  return fmt::format(R"({{"object":"list","remembered":{},"most":{},"request_ids":[{}]}})",
                     log.size(), log.most(), ids);
}

}  // namespace

std::vector<http::Route> decisions_routes(const scheduling::DecisionLog& decisions) {
  const auto list = [&decisions](http::Call call) {
    const auto limit = read_limit(call.head.target);
    if (!limit) return http::respond_error(std::move(call), limit.error());
    return http::respond_json(std::move(call), 200, list_json(decisions, *limit));
  };
  const auto show = [&decisions](http::Call call) {
    const std::string id = wire::percent_decoded(call.head.path().substr(kDecisionsBelow.size()));
    const auto decided = decisions.find(id);
    if (!decided) return http::respond_error(std::move(call), unknown(decisions, id));
    return http::respond_json(std::move(call), 200, decided_json(*decided));
  };
  return {{"GET", std::string(kDecisions), http::Access::Operator, list},
          {"GET", std::string(kDecisionsBelow), http::Access::Operator, show}};
}

}  // namespace baton::api
