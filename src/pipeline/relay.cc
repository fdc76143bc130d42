// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/relay.h"

#include "engine/engine_error.h"
#include "engine/usage_merge.h"
#include "pipeline/forwarding.h"
#include "pipeline/stream_judge.h"
#include "wire/json_object.h"
#include "wire/sse_reader.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr int kOk = 200;
constexpr std::chrono::milliseconds kEndPatience{100};

// A whole answer is a success if it says how each choice ended, and none of them by giving up.
Result<void> judge_whole(std::string_view text) {
  const auto answer = wire::JsonObject::parse(text);
  if (!answer) return fail(Errc::EngineProtocol, "the engine's answer is not a JSON object");
  const auto error = answer->find("error");
  if (error && *error != "null") return fail(engine::read_stream_error(text));
  const auto finish = engine::finish_reason_of(*answer);
  if (!finish) return fail(finish.error());
  if (engine::means_failure(*finish))
    return fail(Errc::EngineFailed, "the engine gave the answer up");
  return {};
}

void add_trail(wire::Headers& headers, const RequestRecord& record, bool tell_workers) {
  if (!tell_workers) return;
  headers.add("X-Baton-Request-Id", record.id);
  if (!record.trail.prefill.worker.empty())
    headers.add("X-Baton-Prefill-Worker", record.trail.prefill.worker);
  if (!record.trail.decode.worker.empty())
    headers.add("X-Baton-Decode-Worker", record.trail.decode.worker);
}

wire::Headers own_headers(bool stream) {
  wire::Headers headers;
  headers.add("Content-Type", stream ? "text/event-stream; charset=utf-8" : "application/json");
  return headers;
}

awaitable<Result<void>> begin_stream(wire::Headers headers, bool tell_workers, ResponseSink& sink,
                                     RequestRecord& record) {
  add_trail(headers, record, tell_workers);
  record.status = kOk;
  co_return co_await sink.begin(kOk, headers);
}

// The prefill ended the request: its answer is the client's.
awaitable<Result<void>> stream_whole(handoff::Answer& answer, const Delivery& delivery,
                                     StreamJudge& judge, ResponseSink& sink,
                                     RequestRecord& record) {
  auto events = engine::as_event_stream(delivery.api, *answer.whole(), delivery.include_usage);
  if (!events) co_return fail(std::move(events.error()));
  if (record.status == 0) {
    const auto begun =
        co_await begin_stream(own_headers(true), delivery.tell_workers, sink, record);
    if (!begun) co_return begun;
  }
  wire::SseReader reader;
  reader.feed(*events);
  judge.expect_prefill(false);
  while (true) {
    const std::string_view bytes = judge.take(reader, *events);
    if (bytes.empty()) break;
    record.response_bytes += bytes.size();
    if (auto written = co_await sink.write(bytes); !written) co_return written;
  }
  if (judge.failure()) co_return fail(*judge.failure());
  co_return co_await sink.end();
}

awaitable<Result<void>> relay_stream(handoff::Answer& answer, Delivery delivery, ResponseSink& sink,
                                     RequestRecord& record, ModelMetrics& metrics) {
  StreamJudge judge(record, metrics, std::move(delivery.continuity));
  wire::SseReader reader;
  judge.expect_prefill(answer.handed_off());
  while (!judge.done()) {
    if (answer.whole()) co_return co_await stream_whole(answer, delivery, judge, sink, record);
    std::optional<Error> failure;
    const auto piece = co_await answer.stream().read();
    if (!piece) {
      failure = piece.error();
    } else if (piece->empty()) {
      failure.emplace(Errc::StreamBroken, "the engine's stream ended without [DONE]");
    } else {
      reader.feed(*piece);
    }
    while (!failure) {
      const std::string_view events = judge.take(reader, *piece);
      if (judge.begun()) answer.first_token();
      if (!events.empty()) {
        // Only now, so that whatever fails before the first event is a plain HTTP error.
        if (record.status == 0) {
          const auto begun =
              co_await begin_stream(headers_for_client(answer.stream().take_headers()),
                                    delivery.tell_workers, sink, record);
          if (!begun) co_return begun;
        }
        record.response_bytes += events.size();
        if (auto written = co_await sink.write(events); !written) co_return written;
      }
      if (judge.waits_for_prefill()) {
        co_await answer.await_prefill();
        judge.set_prefill(answer.prefill());
        continue;
      }
      failure = judge.failure();
      if (events.empty() || judge.done()) break;
    }
    if (!failure) continue;

    engine::StreamContinuity* const continuity = judge.continuity();
    if (continuity && continuity->closing_events()) {
      // All tokens are there; what is missing, Baton knows as well.
      answer.finished();
      const std::string closing = *continuity->closing_events();
      record.response_bytes += closing.size();
      if (auto written = co_await sink.write(closing); !written) co_return written;
      co_return co_await sink.end();
    }
    const engine::Progress* progress = nullptr;
    if (continuity && !continuity->why_not()) {
      progress = continuity->progress();
    } else {
      answer.forbid_migration();
    }
    auto recovered = co_await answer.recover(std::move(*failure), progress);
    if (!recovered) co_return fail(std::move(recovered.error()));
    judge.restart();
    judge.expect_prefill(answer.handed_off());
    reader = wire::SseReader();
  }
  answer.finished();
  const auto ended = co_await sink.end();
  // What follows [DONE] is the end of the message. Reading it lets the connection be used again; it
  // is not worth much waiting.
  if (!answer.stream().done()) co_await answer.stream().await_end(kEndPatience);
  co_return ended;
}

// The text as the client gets it: what the prefill knows of the prompt is put in.
awaitable<void> merge_legs(handoff::Answer& answer, std::string& text) {
  if (!answer.handed_off()) co_return;
  co_await answer.await_prefill();
  const engine::PrefillOutcome& prefill = answer.prefill();
  if (auto merged = engine::rewrite_usage(text, prefill.usage.value_or(engine::Usage{})))
    text = std::move(*merged);
  if (auto merged = engine::merge_input_logprobs(text, prefill.input_logprobs))
    text = std::move(*merged);
}

awaitable<Result<void>> relay_whole(handoff::Answer& answer, Delivery delivery, ResponseSink& sink,
                                    RequestRecord& record, ModelMetrics& metrics) {
  std::string text;
  wire::Headers headers;
  while (!answer.whole()) {
    auto body = co_await answer.stream().read_all(delivery.response_bytes);
    Result<void> judged = body ? judge_whole(*body) : fail(body.error());
    if (judged) {
      answer.first_token();
      text = std::move(*body);
      co_await merge_legs(answer, text);
      answer.finished();
      headers = headers_for_client(answer.stream().take_headers());
      break;
    }
    auto recovered = co_await answer.recover(std::move(judged.error()), nullptr);
    if (!recovered) co_return fail(std::move(recovered.error()));
  }
  if (answer.whole()) {
    text = std::move(*answer.whole());
    headers = own_headers(false);
  }
  if (const auto object = wire::JsonObject::parse(text)) record.usage = engine::usage_of(*object);
  record.on_token(metrics);
  record.status = kOk;
  record.response_bytes = text.size();
  add_trail(headers, record, delivery.tell_workers);
  co_return co_await sink.respond(kOk, headers, text);
}

}  // namespace

// Not a coroutine: while a stream runs, every nested one costs memory.
awaitable<Result<void>> relay(handoff::Answer& answer, Delivery delivery, ResponseSink& sink,
                              RequestRecord& record, ModelMetrics& metrics) {
  if (record.stream) return relay_stream(answer, std::move(delivery), sink, record, metrics);
  return relay_whole(answer, std::move(delivery), sink, record, metrics);
}

}  // namespace baton::pipeline
