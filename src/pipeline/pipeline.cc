// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/pipeline.h"

#include "engine/shared/client_body.h"
#include "engine/shared/completion_json.h"
#include "engine/shared/continuation.h"
#include "engine/shared/usage_merge.h"
#include "pipeline/error_body.h"
#include "pipeline/fan_out.h"
#include "pipeline/interruptible_sink.h"
#include "pipeline/route_query.h"
#include "scheduling/queue/max_queue_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr std::size_t kLongestName = 128;

// Every leg looks into these, on the I/O thread. Engines take short texts there, or a few members.
constexpr std::array<std::string_view, 6> kShortFields{
    "stream_options", "kv_transfer_params", "cache_salt", "extra_key", "lora_path", "lora_request"};
constexpr std::size_t kLongestShortField = std::size_t{64} * 1024;

Error missing_field(std::string_view field) {
  return Error(Errc::InvalidRequest, fmt::format("the request body has no usable \"{}\"", field))
      .with_param(std::string(field));
}

Error too_long(std::string_view field) {
  return Error(Errc::InvalidRequest,
               fmt::format("\"{}\" is longer than {} bytes", field, kLongestShortField))
      .with_param(std::string(field))
      .with_limit(Limit::FieldBytes);
}

engine::IncludeUsage wants_usage(const wire::JsonObject& body) {
  const auto options = body.find_object("stream_options");
  const bool wanted = options && options->find_bool("include_usage").value_or(false);
  return wanted ? engine::IncludeUsage::Yes : engine::IncludeUsage::No;
}

// Most requests have no hints; they share the same none.
std::shared_ptr<const scheduling::Hints> shared(scheduling::Hints hints) {
  static const auto kNone = std::make_shared<const scheduling::Hints>();
  return hints == *kNone ? kNone : std::make_shared<const scheduling::Hints>(std::move(hints));
}

// How long the request may wait for a worker; absent: it does not say.
Result<std::optional<scheduling::MaxQueueWait>> read_patience(const wire::Headers& headers) {
  const auto said = headers.find(scheduling::kMaxQueueWaitHeader);
  if (!said) return std::nullopt;
  auto patience = scheduling::parse_max_queue_wait(*said);
  if (!patience) return fail(std::move(patience.error()));
  return *patience;
}

// Another worker could continue the streamed answer if its own fails.
bool can_continue(const handoff::HandoffRequest& job, bool stream) {
  if (!stream || job.model->migration() == 0) return false;
  const engine::ClientCall call{.api = job.api, .body = job.body->object()};
  const model::EngineSet engines =
      job.model->engines({model::Role::Decode, model::Role::Aggregated});
  constexpr std::array kAll{model::Engine::Vllm, model::Engine::Sglang, model::Engine::Trtllm};
  return std::ranges::none_of(kAll, [&](model::Engine engine) {
    return engines.contains(engine) && engine::why_not_continuable(engine, call).has_value();
  });
}

}  // namespace

awaitable<void> Pipeline::serve(std::unique_ptr<ClientRequest> incoming, ResponseSink& response,
                                Cancellation& cancellation) {
  InterruptibleSink sink(response, tasks_, cancellation);
  RequestDeadline deadline(deadlines_, cancellation);
  RequestRecord record;
  record.id = incoming->request_id;
  record.path = engine::path_of(incoming->api);
  record.received = incoming->received;
  record.request_bytes = incoming->body.size();

  auto understood = co_await prepare(std::move(incoming), record, deadline, cancellation);
  if (!understood) {
    record.error = std::move(understood.error());
  } else if ((*understood)->job.hints->query_only || !(*understood)->branches.empty()) {
    auto served =
        co_await serve_fanout_or_query(std::move(*understood), sink, record, cancellation);
    if (!served) record.error = std::move(served.error());
  } else {
    // In this frame and not in one of its own: it stays for as long as a stream runs.
    Delivery delivery = delivery_for(**understood);
    ModelMetrics& metrics = (*understood)->metrics;
    auto answer = co_await hand_off(**understood, record, cancellation);
    understood->reset();
    if (!answer) {
      record.error = std::move(answer.error());
    } else {
      auto relayed = co_await deliver(*answer, delivery, sink, record, metrics);
      if (!relayed) record.error = std::move(relayed.error());
    }
  }  // the workers are free again before anything else is done
  if (sink.interrupted()) {
    co_await sink.settled();
    record.error = cancellation.reason();
    record.status = sink.status();
  } else if (record.error) {
    co_await deliver_error(*record.error, sink, record);
  }
  if (record.cache_hit_tracker && !record.error) record.cache_hit_tracker->finish(record.usage);
  const auto model = fleet_.find(record.model);
  record.trace.page.close(outcome_of(record));
  ledger_.close(record, model ? ledger_.metrics(model->name()) : ledger_.unknown());
}

// Not coroutines: an argument of an awaited call stays in the caller's frame as long as a stream runs.
awaitable<Result<handoff::UpstreamResponse>> Pipeline::hand_off(ParsedRequest& understood,
                                                                RequestRecord& record,
                                                                Cancellation& cancellation) {
  return handoff_.run(std::move(understood.job), record.trace, cancellation);
}

awaitable<Result<void>> Pipeline::deliver(handoff::UpstreamResponse& answer, Delivery& delivery,
                                          ResponseSink& sink, RequestRecord& record,
                                          ModelMetrics& metrics) {
  return relay(answer, std::move(delivery), sink, record, metrics);
}

awaitable<Result<std::unique_ptr<Pipeline::ParsedRequest>>> Pipeline::prepare(
    std::unique_ptr<ClientRequest> incoming, RequestRecord& record, RequestDeadline& deadline,
    Cancellation& cancellation) {
  const auto timeout =
      request_timeout(incoming->headers, incoming->trusted, options_.request_timeout);
  if (!timeout) co_return fail(timeout.error());
  deadline.begin(*timeout, incoming->received);
  if (cancellation.requested()) co_return fail(cancellation.reason());
  auto body = co_await prompts_.read(std::move(incoming->body), std::move(incoming->memory));
  if (!body) co_return fail(std::move(body.error()));
  auto understood = co_await prompts_.cpu().run_sized(
      record.request_bytes, [&] { return understand(*incoming, *std::move(body), record); });
  if (!understood) co_return understood;
  handoff::HandoffRequest& job = (*understood)->job;
  const PerPrompt per_prompt = (*understood)->branches.empty() ? PerPrompt::No : PerPrompt::Yes;
  auto tokens = co_await prompts_.tokens(job, per_prompt, record, cancellation);
  if (!tokens) co_return fail(std::move(tokens.error()));
  job.body->memory().shrink(record.request_bytes + tokens->bytes());
  job.prompt_tokens = estimated_tokens(record);
  job.send_token_ids = tokens->send;
  // Branches get their own; a question is answered for the first.
  if (per_prompt == PerPrompt::No || job.hints->query_only)
    attach_prompt(job, *tokens, 0, cache_view_, record);
  (*understood)->tokens = *std::move(tokens);
  co_return understood;
}

Delivery Pipeline::delivery_for(ParsedRequest& understood) const {
  handoff::HandoffRequest& job = understood.job;
  Delivery delivery{.api = job.api,
                    .include_usage = understood.include_usage,
                    .response_bytes = options_.response_bytes,
                    .tell_workers = options_.tell_workers,
                    .cpu = prompts_.cpu(),
                    .input_logprobs = engine::wants_input_logprobs(job.body->object()),
                    .continuity = {}};
  job.continuable = understood.continuable;
  if (job.continuable) {
    const engine::ClientCall call{.api = job.api, .body = job.body->object()};
    delivery.continuity = std::make_unique<engine::StreamContinuity>(call);
  }
  return delivery;
}

awaitable<Result<void>> Pipeline::serve_fanout_or_query(std::unique_ptr<ParsedRequest> understood,
                                                        ResponseSink& sink, RequestRecord& record,
                                                        Cancellation& cancellation) {
  if (understood->job.hints->query_only) {
    if (!understood->branches.empty()) {
      understood->job.choice = understood->branches.front().choice;
      understood->job.prompt = understood->branches.front().prompt;
    }
    co_return co_await answer_query(understood->job, handoff_.random(), sink, record);
  }
  Delivery delivery = delivery_for(*understood);
  co_return co_await serve_branches(
      {handoff_, tasks_, std::move(understood->job), std::move(understood->branches),
       understood->choices, cache_view_, std::move(understood->tokens), options_.memory},
      std::move(delivery), sink, record, understood->metrics, cancellation);
}

Result<fleet::Fleet::Served> Pipeline::find_model(const wire::JsonObject& body,
                                                  RequestRecord& record) {
  const auto name = body.find_string("model");
  if (!name || name->empty()) return fail(missing_field("model"));
  // Whatever a client writes there goes to the log and back to it: not all of it, if it is a novel.
  record.model = name->substr(0, kLongestName);
  auto served = fleet_.find_served(*name);
  if (!served.model) {
    return fail(
        Error(Errc::ModelNotFound, fmt::format("the model \"{}\" does not exist", record.model))
            .with_param("model"));
  }
  return served;
}

Result<void> Pipeline::check(engine::Api api, const wire::JsonObject& body,
                             RequestRecord& record) const {
  const std::string_view input = api == engine::Api::Chat ? "messages" : "prompt";
  if (!body.has(input)) return fail(missing_field(input));
  record.stream = body.find_bool("stream").value_or(false);
  // Engines read "yes" and 1 as true, so guessing here could make a whole answer of a stream.
  const auto stream = body.find("stream");
  if (stream && *stream != "null" && !body.find_bool("stream")) {
    return fail(
        Error(Errc::InvalidRequest, "\"stream\" must be true or false").with_param("stream"));
  }
  if (body.text().size() > kLongestShortField) {
    for (const std::string_view field : kShortFields) {
      if (body.find(field).value_or("").size() > kLongestShortField) return fail(too_long(field));
    }
  }
  if (options_.handoff_fields == config::ClientHandoffFields::Strip) return {};
  if (const auto field = engine::handoff_field_in(body)) {
    return fail(Error(Errc::InvalidRequest,
                      fmt::format("\"{}\" is between Baton and the engines; remove it", *field))
                    .with_param(std::string(*field)));
  }
  return {};
}

Result<std::unique_ptr<Pipeline::ParsedRequest>> Pipeline::understand(
    ClientRequest& incoming, std::shared_ptr<const engine::ClientBody> body,
    RequestRecord& record) {
  const wire::JsonObject& object = body->object();
  auto served = find_model(object, record);
  if (!served) return fail(std::move(served.error()));
  const std::shared_ptr<fleet::Model>& model = served->model;
  if (auto checked = check(incoming.api, object, record); !checked)
    return fail(std::move(checked.error()));
  auto hints =
      scheduling::read_hints(incoming.headers, object, incoming.trusted, model->session_fields());
  if (!hints) return fail(std::move(hints.error()));
  auto patience = read_patience(incoming.headers);
  if (!patience) return fail(std::move(patience.error()));
  std::vector<engine::Branch> branches;
  const bool as_one = engine::wants_greedy_choices(object) &&
                      model->engines({model::Role::Decode}).contains(model::Engine::Vllm);
  if (model->disaggregated() && !as_one) {
    auto several = engine::branches_of(incoming.api, object);
    if (!several) return fail(std::move(several.error()));
    branches = std::move(*several);
  }
  ModelMetrics& metrics = ledger_.metrics(model->name());
  const std::int64_t n = object.find_integer("n").value_or(1);
  auto understood = std::make_unique<ParsedRequest>(ParsedRequest{
      .job = {{.model = model,
               .api = incoming.api,
               .body = body,
               .request_id = incoming.request_id,
               .hints = shared(std::move(*hints)),
               .adapter = served->adapter,
               .received = record.received,
               .max_queue_wait = *patience,
               .client = std::move(incoming.client)},
              /*by_alias=*/!served->adapter && object.find_string("model") != model->name(),
              headers_for_worker(incoming.headers, options_.forward_authorization,
                                 options_.stripped_headers),
              metrics.handoff},
      .include_usage = wants_usage(object),
      .branches = std::move(branches),
      .choices = static_cast<std::size_t>(n > 0 ? n : 1),
      .continuable = false,
      .tokens = {},
      .metrics = metrics});
  understood->continuable =
      understood->branches.empty() && can_continue(understood->job, record.stream);
  return understood;
}

awaitable<void> Pipeline::deliver_error(Error& error, ResponseSink& sink, RequestRecord& record) {
  if (error.code() == Errc::ClientGone) {
    record.status = error.http_status();
    co_return;
  }
  const bool overload = error.code() == Errc::EngineOverloaded;
  if (overload && options_.overload_status != 0) error.with_status(options_.overload_status);
  if (record.status == 0) {
    record.status = error.http_status();
    co_await sink.respond(record.status, error_headers(error), error_body(error));
    co_return;
  }
  // The head is out: say it inside the stream, and end without [DONE].
  const std::string event = error_event(error);
  if (const auto written = co_await sink.write(event); !written) co_return;
  co_await sink.end();
}

}  // namespace baton::pipeline
