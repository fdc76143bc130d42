// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/route_query.h"

#include "engine/shared/choice_merge.h"
#include "engine/shared/client_body.h"
#include "pipeline/choice_json.h"
#include "wire/http_status.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace baton::pipeline {
namespace {

using wire::kOk;

std::string waits_json(const scheduling::Waits& waits) {
  using For = scheduling::Waits::For;
  if (waits.what == For::Worker) {
    return fmt::format(R"({{"kind":"worker","worker":{},"dp_rank":{},"ahead":{}}})",
                       wire::json_quote(waits.worker->name()),
                       waits.rank ? fmt::format("{}", *waits.rank) : "null", waits.ahead);
  }
  return fmt::format(R"({{"kind":"{}","worker":null,"dp_rank":null,"ahead":{}}})",
                     waits.what == For::Request ? "request" : "workers", waits.ahead);
}

std::string json_or_null(const std::optional<scheduling::Choice>& choice) {
  return choice ? choice_json(*choice) : "null";
}

}  // namespace

Result<std::string> describe_route(const handoff::HandoffRequest& job, const Random& random) {
  const auto preview = scheduling::Scheduler::preview(job, random);
  if (!preview) return fail(preview.error());
  const scheduling::WorkerSelector::Preview& workers = preview->workers;
  const auto& waits = preview->waits;
  return fmt::format(
      R"({{"object":"route","model":{},"prompt_tokens":{},"handoff":{},"bypass":{},"waits":{},"waits_for":{},"prefill":{},"decode":{}}})",
      wire::json_quote(job.model->name()), job.prompt_tokens,
      workers.mode ? wire::json_quote(model::to_string(*workers.mode)) : "null",
      workers.bypass ? wire::json_quote(scheduling::to_string(*workers.bypass)) : "null",
      waits.has_value(), waits ? waits_json(*waits) : "null", json_or_null(workers.prefill),
      json_or_null(workers.decode));
}

awaitable<Result<void>> answer_query(const handoff::HandoffRequest& job, const Random& random,
                                     ResponseSink& sink, RequestRecord& record) {
  const auto route = describe_route(job, random);
  if (!route) co_return fail(route.error());
  wire::Headers headers;
  headers.add("Content-Type", "application/json");
  record.status = kOk;
  record.response_bytes = route->size();
  co_return co_await sink.respond(kOk, headers, *route);
}

awaitable<Result<std::string>> RouteQuery::describe(wire::Headers headers, std::string body,
                                                    MemoryShare memory,
                                                    Cancellation& cancellation) {
  RequestRecord record;  // of a request that is not served: never read
  record.request_bytes = body.size();
  auto parsed = co_await prompts_.read(std::move(body), std::move(memory));
  if (!parsed) co_return fail(std::move(parsed.error()));
  const wire::JsonObject& object = (*parsed)->object();
  const std::string name = object.find_string("model").value_or("");
  const fleet::Fleet::Served served = fleet_.find_served(name);
  const std::shared_ptr<fleet::Model>& model = served.model;
  if (!model) {
    co_return fail(Error(Errc::ModelNotFound, fmt::format("the model \"{}\" does not exist", name))
                       .with_param("model"));
  }
  auto hints =
      scheduling::read_hints(headers, object, scheduling::Trusted::Yes, model->session_fields());
  if (!hints) co_return fail(std::move(hints.error()));
  const engine::Api api = object.has("messages") ? engine::Api::Chat : engine::Api::Completions;
  std::vector<engine::Branch> branches;
  if (model->disaggregated()) {
    auto several = engine::branches_of(api, object);
    if (!several) co_return fail(std::move(several.error()));
    branches = *std::move(several);
  }
  handoff::HandoffRequest job{
      {.model = model,
       .api = api,
       .body = *parsed,
       .request_id = {},
       .hints = std::make_shared<const scheduling::Hints>(std::move(*hints)),
       .adapter = served.adapter},
      /*by_alias=*/false,
      {},
      ledger_.metrics(model->name()).handoff};
  const PerPrompt per_prompt = branches.empty() ? PerPrompt::No : PerPrompt::Yes;
  auto tokens = co_await prompts_.tokens(job, per_prompt, record, cancellation);
  if (!tokens) co_return fail(std::move(tokens.error()));
  job.prompt_tokens = estimated_tokens(record);
  attach_prompt(job, *tokens, 0, cache_view_, record);
  if (!branches.empty()) {  // each would be served by itself; this is the first
    job.choice = branches.front().choice;
    job.prompt = branches.front().prompt;
  }
  co_return describe_route(job, random_);
}

}  // namespace baton::pipeline
