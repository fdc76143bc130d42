// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/route_query.h"

#include "engine/client_body.h"
#include "handoff/selection.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr int kOk = 200;

std::string rank_json(std::optional<std::uint32_t> rank) {
  return rank ? fmt::format("{}", *rank) : "null";
}

std::string candidate_json(const fleet::Choice::Candidate& candidate) {
  return fmt::format(
      R"({{"worker":{},"dp_rank":{},"load":{},"preference":{},"score":{},"why_not":{}}})",
      wire::json_quote(candidate.worker->name()), rank_json(candidate.rank), candidate.load,
      candidate.preference, candidate.score,
      candidate.why_not.empty() ? "null" : wire::json_quote(candidate.why_not));
}

std::string choice_json(const std::optional<fleet::Choice>& choice) {
  if (!choice) return "null";
  std::string candidates;
  for (const auto& candidate : choice->candidates) {
    if (!candidates.empty()) candidates += ',';
    candidates += candidate_json(candidate);
  }
  const auto& picked = choice->candidates[choice->picked];
  return fmt::format(R"({{"worker":{},"dp_rank":{},"candidates":[{}]}})",
                     wire::json_quote(picked.worker->name()), rank_json(picked.rank), candidates);
}

}  // namespace

Result<std::string> describe_route(const handoff::Job& job, const fleet::Random& random) {
  const auto preview = handoff::Selection(job, random).preview();
  if (!preview) return fail(preview.error());
  return fmt::format(R"({{"object":"route","model":{},"handoff":{},"prefill":{},"decode":{}}})",
                     wire::json_quote(job.model->name()),
                     preview->mode ? wire::json_quote(to_string(*preview->mode)) : "null",
                     choice_json(preview->prefill), choice_json(preview->decode));
}

Result<std::string> describe_request(fleet::Fleet& fleet, RequestLedger& ledger,
                                     const wire::Headers& headers, std::string body,
                                     const fleet::Random& random) {
  auto parsed = engine::ClientBody::parse(std::move(body));
  if (!parsed) return fail(std::move(parsed.error()));
  const wire::JsonObject& object = (*parsed)->object();
  const std::string name = object.find_string("model").value_or("");
  const auto model = fleet.find(name);
  if (!model) {
    return fail(Error(Errc::ModelNotFound, fmt::format("the model \"{}\" does not exist", name))
                    .with_param("model"));
  }
  auto hints = routing::read_hints(headers, object, routing::Trusted::Yes, model->session_fields());
  if (!hints) return fail(std::move(hints.error()));
  const engine::Api api = object.has("messages") ? engine::Api::Chat : engine::Api::Completions;
  return describe_route({.model = model,
                         .api = api,
                         .body = *parsed,
                         .by_alias = false,
                         .headers = {},
                         .request_id = {},
                         .hints = std::make_shared<const routing::Hints>(std::move(*hints)),
                         .counters = ledger.metrics(model->name()).handoff},
                        random);
}

awaitable<Result<void>> answer_query(const handoff::Job& job, const fleet::Random& random,
                                     ResponseSink& sink, RequestRecord& record) {
  const auto route = describe_route(job, random);
  if (!route) co_return fail(route.error());
  wire::Headers headers;
  headers.add("Content-Type", "application/json");
  record.status = kOk;
  record.response_bytes = route->size();
  co_return co_await sink.respond(kOk, headers, *route);
}

}  // namespace baton::pipeline
