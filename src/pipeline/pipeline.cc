// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/pipeline.h"

#include "engine/client_body.h"
#include "engine/completion_json.h"
#include "pipeline/error_body.h"
#include "pipeline/relay.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr int kOk = 200;
constexpr std::size_t kLongestName = 128;

Error missing_field(std::string_view field) {
  return Error(Errc::InvalidRequest, fmt::format("the request body has no usable \"{}\"", field))
      .with_param(std::string(field));
}

engine::IncludeUsage wants_usage(const wire::JsonObject& body) {
  const auto options = body.find_object("stream_options");
  const bool wanted = options && options->find_bool("include_usage").value_or(false);
  return wanted ? engine::IncludeUsage::Yes : engine::IncludeUsage::No;
}

}  // namespace

awaitable<void> Pipeline::serve(std::unique_ptr<Incoming> incoming, ResponseSink& sink,
                                Cancellation& cancellation) {
  const engine::Api api = incoming->api;
  RequestRecord record;
  record.id = incoming->request_id;
  record.path = engine::path_of(api);
  record.received = incoming->received;
  record.request_bytes = incoming->body.size();

  {
    auto obtained = co_await obtain(std::move(incoming), record, cancellation);
    if (obtained) {
      auto delivered = co_await deliver(api, *obtained, sink, record);
      if (!delivered) record.error = std::move(delivered.error());
    } else {
      record.error = std::move(obtained.error());
    }
  }  // the workers are free again before anything else is done
  if (record.error) co_await deliver_error(*record.error, sink, record);
  const fleet::Model* model = fleet_.find(record.model);
  ledger_.close(record, ledger_.metrics(model ? model->name() : std::string_view()));
}

awaitable<Result<Pipeline::Obtained>> Pipeline::obtain(std::unique_ptr<Incoming> incoming,
                                                       RequestRecord& record,
                                                       Cancellation& cancellation) {
  auto understood = understand(*incoming, record);
  incoming.reset();
  if (!understood) co_return fail(std::move(understood.error()));
  const engine::IncludeUsage include_usage = understood->include_usage;
  ModelMetrics& metrics = ledger_.metrics(understood->job.model.name());
  auto answer = co_await handoff_.run(std::move(understood->job), record.trail, cancellation);
  if (!answer) co_return fail(std::move(answer.error()));
  if (answer->whole && cancellation.requested()) co_return fail(cancellation.reason());
  co_return Obtained{std::move(*answer), metrics, include_usage};
}

awaitable<Result<void>> Pipeline::deliver(engine::Api api, Obtained& obtained, ResponseSink& sink,
                                          RequestRecord& record) {
  if (obtained.answer.whole) return deliver_whole(api, obtained, sink, record);
  if (record.stream) return relay_stream(obtained.answer, sink, record, obtained.metrics);
  return relay_whole(obtained.answer, options_.response_bytes, sink, record, obtained.metrics);
}

Result<Pipeline::Understood> Pipeline::understand(Incoming& incoming, RequestRecord& record) {
  auto parsed = engine::ClientBody::parse(std::move(incoming.body));
  if (!parsed) return fail(std::move(parsed.error()));
  const std::shared_ptr<const engine::ClientBody> body = std::move(*parsed);
  const wire::JsonObject& object = body->object();

  const auto name = object.find_string("model");
  if (!name || name->empty()) return fail(missing_field("model"));
  // Whatever a client writes there goes to the log and back to it: not all of it, if it is a novel.
  record.model = name->substr(0, kLongestName);
  fleet::Model* model = fleet_.find(*name);
  if (!model) {
    return fail(
        Error(Errc::ModelNotFound, fmt::format("the model \"{}\" does not exist", record.model))
            .with_param("model"));
  }
  const std::string_view input = incoming.api == engine::Api::Chat ? "messages" : "prompt";
  if (!object.has(input)) return fail(missing_field(input));
  record.stream = object.find_bool("stream").value_or(false);
  // Engines read "yes" and 1 as true, so guessing here could make a whole answer of a stream.
  const auto stream = object.find("stream");
  if (stream && *stream != "null" && !object.find_bool("stream")) {
    return fail(
        Error(Errc::InvalidRequest, "\"stream\" must be true or false").with_param("stream"));
  }
  if (std::string missing = model->why_not_ready(); !missing.empty()) {
    return fail(
        Error(Errc::NoWorkers, fmt::format("the model \"{}\" cannot serve now: {}", *name, missing))
            .with_retry_after(std::chrono::seconds(1)));
  }
  return Understood{
      {*model, incoming.api, body, *name != model->name(),
       headers_for_worker(incoming.headers, incoming.request_id, options_.forward_authorization)},
      wants_usage(object)};
}

awaitable<Result<void>> Pipeline::deliver_whole(engine::Api api, Obtained& obtained,
                                                ResponseSink& sink, RequestRecord& record) {
  std::string& body = *obtained.answer.whole;
  if (const auto object = wire::JsonObject::parse(body)) record.usage = engine::usage_of(*object);
  if (record.stream) {
    auto events = engine::as_event_stream(api, body, obtained.include_usage);
    if (!events) co_return fail(std::move(events.error()));
    body = std::move(*events);
  }
  wire::Headers headers;
  headers.add("Content-Type",
              record.stream ? "text/event-stream; charset=utf-8" : "application/json");
  record.on_token(obtained.metrics);
  record.status = kOk;
  record.response_bytes = body.size();
  co_return co_await sink.respond(kOk, headers, body);
}

awaitable<void> Pipeline::deliver_error(const Error& error, ResponseSink& sink,
                                        RequestRecord& record) {
  if (error.code() == Errc::ClientGone) {
    record.status = error.http_status();
    co_return;
  }
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
