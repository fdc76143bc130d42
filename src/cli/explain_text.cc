// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/explain_text.h"

#include "cli/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace baton::cli {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFactsLegend = R"(
CACHED and NEW are tokens of this prompt, TO DO tokens of other prompts that the worker has to compute first, BLOCKS its
KV blocks in use with this request, RUNNING its requests.
)";
constexpr std::string_view kCostLegend =
    R"(COST is in KV blocks, the lowest wins: (PREFILL + DECODE + REQUESTS) x preference. PREFILL is what is to be computed (RAW)
less what is cached (CREDIT), scaled.
)";
constexpr std::string_view kForecastLegend =
    R"(FORECAST is in seconds, the lowest wins: (WAIT + COMPUTE + TRANSFER + STALL + WASTE) x preference, and a trace of what runs there.
STALL is what it costs those that decode there meanwhile; WASTE what it costs others to compute anew what another worker has.
)";

// At most so many decimals, without zeros at their end.
std::string number(const Json& value, int places = 3) {
  if (!value.is_number()) return "-";
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  std::string text = fmt::format("{:.{}f}", value.get<double>(), places);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string count(const Json& value, std::string_view one, std::string_view many) {
  const std::string text = number(value);
  return fmt::format("{} {}", text, text == "1" ? one : many);
}

std::string text_of(const Json& value) { return value.is_string() ? plain(value) : std::string(); }

std::string rank_of(const Json& place) {
  const std::string worker = plain(place.at("worker"));
  const Json& rank = place.at("dp_rank");
  return rank.is_null() ? worker : fmt::format("{} rank {}", worker, number(rank));
}

// Why one that could have had the request did not get it.
std::string why_passed_over(const Json& choice, const Json& candidate) {
  const std::string policy = choice.at("policy");
  if (choice.at("by") == "session") return "the session is served elsewhere";
  if (policy == "round_robin") return "not its turn";
  if (policy == "random") return "not drawn";
  const Json& best = choice.at("candidates").at(choice.at("picked").get<std::size_t>());
  const Json& own = candidate.at("score");
  const Json& taken = best.at("score");
  if (!own.is_number() || !taken.is_number()) return "";
  const double more = own.get<double>() - taken.get<double>();
  if (policy == "power_of_two" && more <= 0) return "not drawn";
  if (std::abs(more) < 1e-9) return "as good; the dice fell otherwise";
  if (more < 0) return "cheaper, but a second choice for its health, or not drawn";
  constexpr int kPlaces = 6;
  const std::string much = number(more, kPlaces);
  return much == "0" ? "a trace more" : much + " more";
}

std::string why_not(const Json& choice, std::size_t i) {
  const Json& candidate = choice.at("candidates").at(i);
  if (i == choice.at("picked").get<std::size_t>()) return "";
  if (const std::string said = text_of(candidate.at("why_not")); !said.empty()) return said;
  return why_passed_over(choice, candidate);
}

std::vector<std::size_t> by_score(const Json& candidates, std::size_t picked) {
  std::vector<std::size_t> order(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::size_t i) {
    const Json& one = candidates.at(i);
    const Json& score = one.at("score");
    return std::tuple(i != picked, one.at("why_not").is_string(),
                      score.is_number() ? score.get<double>() : HUGE_VAL, i);
  };
  std::ranges::sort(order, {}, key);
  return order;
}

// Terms of what a choice goes by: where they stand in a candidate, and their columns.
struct Terms {
  const char* field;
  std::vector<std::pair<const char*, const char*>> columns;
  const char* sum;
  int places;
  std::string_view legend;
};

const Terms& cost_terms() {
  static const Terms kTerms{"cost",
                            {{"raw_prefill_blocks", "RAW"},
                             {"credit", "CREDIT"},
                             {"prefill", "PREFILL"},
                             {"decode_blocks", "DECODE"},
                             {"requests", "REQUESTS"}},
                            "COST",
                            3,
                            kCostLegend};
  return kTerms;
}

const Terms& forecast_terms() {
  static const Terms kTerms{"forecast",
                            {{"wait", "WAIT"},
                             {"compute", "COMPUTE"},
                             {"transfer", "TRANSFER"},
                             {"stall", "STALL"},
                             {"waste", "WASTE"}},
                            "FORECAST",
                            6,
                            kForecastLegend};
  return kTerms;
}

// Null: the policy weighs nothing.
const Terms* terms_of(const Json& choice) {
  for (const Terms* terms : {&cost_terms(), &forecast_terms()}) {
    for (const Json& one : choice.at("candidates")) {
      if (one.at(terms->field).is_object()) return terms;
    }
  }
  return nullptr;
}

constexpr std::array<std::pair<const char*, const char*>, 4> kFacts{{{"cached_tokens", "CACHED"},
                                                                     {"new_tokens", "NEW"},
                                                                     {"prefill_tokens", "TO DO"},
                                                                     {"decode_blocks", "BLOCKS"}}};

std::vector<std::string> row_of(const Json& choice, std::size_t i, const Terms* terms) {
  const Json& one = choice.at("candidates").at(i);
  const bool picked = i == choice.at("picked").get<std::size_t>();
  std::vector<std::string> row{picked ? "*" : "", rank_of(one)};
  if (terms != nullptr) {
    for (const auto& [field, title] : kFacts) row.push_back(number(one.at(field)));
  }
  row.push_back(number(one.at("load")));
  if (terms != nullptr) {
    const Json& all = one.at(terms->field);
    for (const auto& [term, title] : terms->columns)
      row.push_back(all.is_object() ? number(all.value(term, Json()), terms->places) : "-");
  }
  row.push_back(number(one.at("score"), terms != nullptr ? terms->places : 3));
  row.push_back(why_not(choice, i));
  return row;
}

std::string table_of(const Json& choice, const Terms* terms) {
  std::vector<Column> columns{{"", false}, {"WORKER", false}};
  if (terms != nullptr) {
    for (const auto& [field, title] : kFacts) columns.push_back({title, true});
  }
  columns.push_back({"RUNNING", true});
  if (terms != nullptr) {
    for (const auto& [term, title] : terms->columns) columns.push_back({title, true});
  }
  columns.push_back({terms != nullptr ? terms->sum : "SCORE", true});
  columns.push_back({"WHY NOT", false});
  const Json& candidates = choice.at("candidates");
  std::vector<std::vector<std::string>> rows;
  for (const std::size_t i : by_score(candidates, choice.at("picked").get<std::size_t>()))
    rows.push_back(row_of(choice, i, terms));
  std::string table = text_table(columns, rows);
  const auto of = choice.at("of").get<std::size_t>();
  if (of > candidates.size())
    table += fmt::format("and {} more, none of them cheaper\n", of - candidates.size());
  return table;
}

std::string how(const Json& choice) {
  const std::string by = choice.at("by");
  if (by == "name") return "the request names it";
  if (by == "session") return "its session was served there";
  return fmt::format("policy {}", plain(choice.at("policy")));
}

std::string role_of(const std::string& part) {
  if (part == "prefill") return "Prefill";
  if (part == "decode") return "Decode";
  return "Prefill and decode";
}

// A note for forecasts that missed lately: load then decides beside them.
std::string distrust_text(const Json& choice) {
  for (const Json& one : choice.at("candidates")) {
    const Json& forecast = one.at("forecast");
    if (!forecast.is_object()) continue;
    const double trust = forecast.value("trust", 1.0);
    if (trust >= 1) return "";
    return fmt::format(
        "Forecasts for these workers missed lately: {:.0f} % of WAIT and COMPUTE follow from "
        "load.\n",
        100 * (1 - trust));
  }
  return "";
}

std::string decision_text(const Json& decision) {
  const Json& choice = decision.at("choice");
  const auto attempt = decision.at("attempt").get<std::int64_t>();
  const std::string why = text_of(decision.at("given_back"));
  return fmt::format("\n{}: {} ({}{})\n{}{}{}", role_of(decision.at("part")), rank_of(choice),
                     how(choice), attempt > 1 ? fmt::format(", attempt {}", attempt) : "",
                     why.empty() ? "" : fmt::format("But it did not get the request: {}.\n", why),
                     distrust_text(choice), table_of(choice, terms_of(choice)));
}

// Explains the column titles that occur in the tables.
std::string legend_of(const Json& decisions) {
  std::string legend;
  for (const Terms* terms : {&forecast_terms(), &cost_terms()}) {
    const bool used = std::ranges::any_of(decisions, [terms](const Json& decision) {
      return terms_of(decision.at("choice")) == terms;
    });
    if (used) legend += terms->legend;
  }
  return legend.empty() ? "" : std::string(kFactsLegend) + legend;
}

std::string waited_text(const Json& waited) {
  std::string text;
  if (const std::string name = text_of(waited.at("policy_class")); !name.empty()) {
    text += fmt::format("Waited {} ms in the queue of class {}, {} ahead of it.\n",
                        number(waited.at("queued_ms")), name, number(waited.at("ahead")));
  }
  if (waited.at("followed_ms").get<double>() > 0) {
    text += fmt::format("Waited {} ms for a request with the same beginning.\n",
                        number(waited.at("followed_ms")));
  }
  if (const std::string why = text_of(waited.at("refused")); !why.empty())
    text += fmt::format("Then it was turned away: {}.\n", why);
  return text;
}

std::string bypass_text(const Json& bypass) {
  const std::string label = text_of(bypass);
  if (label.empty()) return "";
  std::string_view words;
  if (label == "bypass_declined_by_policy") {
    words = "no, too much of the prompt is new, and prefill workers have time";
  } else if (label == "bypass_denied_decode_busy") {
    words = "no, it would get too full";
  } else if (label == "bypass_denied_decode_busy_unknown") {
    words = "no, the number of its KV blocks is unknown";
  } else {
    words = "yes";
  }
  return fmt::format("Is the decode worker to compute the prompt itself? {} ({}).\n", words, label);
}

std::string outcome_text(const Json& outcome) {
  if (outcome.is_null()) return "\nIt still runs.\n";
  std::string text = fmt::format("\nOutcome: {}", number(outcome.at("status")));
  if (const std::string error = text_of(outcome.at("error")); !error.empty())
    text += fmt::format(", error {}", error);
  text += ", " + count(outcome.at("retries"), "retry", "retries");
  if (outcome.at("migrations") != 0)
    text += ", " + count(outcome.at("migrations"), "migration", "migrations");
  if (outcome.at("ttft_ms").is_number())
    text += fmt::format(", first token after {} ms", number(outcome.at("ttft_ms")));
  if (outcome.at("prompt_tokens").is_number() && outcome.at("cached_tokens").is_number()) {
    text += fmt::format("; the engine had {} of {} tokens cached",
                        number(outcome.at("cached_tokens")), number(outcome.at("prompt_tokens")));
  }
  return text + "\n";
}

Error no_answer() {
  return {Errc::EngineProtocol,
          "the answer is not that of a router's /v1/decisions: is it another version, or another "
          "program?"};
}

}  // namespace

Result<std::string> explanation(std::string_view json) {
  try {
    const Json decided = Json::parse(json);
    std::string text = fmt::format("Request {}: model {}, {}, {}\n",
                                   plain(decided.at("request_id")), plain(decided.at("model")),
                                   count(decided.at("prompt_tokens"), "token", "tokens"),
                                   plain(decided.at("begun")));
    text += waited_text(decided.at("waited"));
    text += bypass_text(decided.at("bypass"));
    for (const Json& decision : decided.at("decisions")) text += decision_text(decision);
    if (decided.at("decisions").empty()) text += "\nNo worker was chosen for it.\n";
    text += outcome_text(decided.at("outcome"));
    return text + legend_of(decided.at("decisions"));
  } catch (const Json::exception&) {
    return fail(no_answer());
  }
}

Result<std::string> recent_requests(std::string_view json) {
  try {
    std::string text;
    for (const Json& id : Json::parse(json).at("request_ids")) text += plain(id) + "\n";
    return text.empty() ? "No request is remembered yet.\n" : text;
  } catch (const Json::exception&) {
    return fail(no_answer());
  }
}

}  // namespace baton::cli
