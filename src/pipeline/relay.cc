// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/relay.h"

#include "engine/engine_error.h"
#include "engine/stream_event.h"
#include "pipeline/forwarding.h"
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

// Role. Judges the events of one stream, and says how many of their bytes may go on to the client.
class StreamJudge {
 public:
  StreamJudge(RequestRecord& record, ModelMetrics& metrics) : record_(record), metrics_(metrics) {}

  // The next sound events of `piece`, which `reader` was fed, as one range of bytes. Empty where
  // there are no more.
  std::string_view take(wire::SseReader& reader, std::string_view piece) {
    const char* begin = nullptr;
    const char* end = nullptr;
    while (!failure_ && !done_) {
      const auto event = reader.next();
      if (!event || !accept(event->data)) break;
      // An event that began in an earlier piece lies elsewhere, and goes on alone.
      const bool whole =
          event->raw.data() >= piece.data() && event->raw.data() < piece.data() + piece.size();
      if (!whole) return event->raw;
      if (!begin) begin = event->raw.data();
      end = event->raw.data() + event->raw.size();
    }
    if (reader.overflowed() && !failure_) {
      failure_.emplace(Errc::EngineProtocol, "the engine sent an event that is too large");
    }
    return begin ? std::string_view(begin, static_cast<std::size_t>(end - begin))
                 : std::string_view();
  }

  bool done() const { return done_; }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  bool accept(std::string_view data) {
    if (data.empty()) return true;  // a comment
    engine::StreamEvent event = engine::read_stream_event(data);
    switch (event.kind) {
      case engine::StreamEvent::Kind::Malformed:
        failure_.emplace(Errc::EngineProtocol, "the engine sent an event that is not JSON");
        return false;
      case engine::StreamEvent::Kind::Error:
        failure_ = engine::read_stream_error(data);
        return false;
      case engine::StreamEvent::Kind::Aborted:
        failure_.emplace(Errc::EngineFailed, "the engine gave the answer up");
        return false;
      case engine::StreamEvent::Kind::Done:
        if (!finished_) {
          failure_.emplace(Errc::EngineFailed,
                           "the engine ended the stream before the answer was finished");
          return false;
        }
        done_ = true;
        return true;
      case engine::StreamEvent::Kind::Chunk:
        break;
    }
    if (event.has_content) record_.on_token(metrics_);
    if (event.has_finish) finished_ = true;
    if (event.usage) record_.usage = event.usage;
    return true;
  }

  RequestRecord& record_;
  ModelMetrics& metrics_;
  bool finished_ = false;
  bool done_ = false;
  std::optional<Error> failure_;
};

Error why_it_ended(handoff::Answer& answer, const Error& error) {
  if (auto failure = answer.prefill_failure()) return std::move(*failure);
  if (answer.stream->begun()) answer.prefill_delivered();
  return error;
}

// A whole answer is a success if it says how each choice ended, and none of them by giving up.
Result<void> judge_whole(const wire::JsonObject& answer, std::string_view text) {
  const auto error = answer.find("error");
  if (error && *error != "null") return fail(engine::read_stream_error(text));
  const auto finish = engine::finish_reason_of(answer);
  if (!finish) return fail(finish.error());
  if (engine::means_failure(*finish))
    return fail(Errc::EngineFailed, "the engine gave the answer up");
  return {};
}

awaitable<Result<void>> begin_stream(handoff::Answer& answer, ResponseSink& sink,
                                     RequestRecord& record) {
  record.status = kOk;
  const wire::Headers headers = headers_for_client(answer.stream->take_headers());
  co_return co_await sink.begin(kOk, headers);
}

}  // namespace

awaitable<Result<void>> relay_stream(handoff::Answer& answer, ResponseSink& sink,
                                     RequestRecord& record, ModelMetrics& metrics) {
  wire::SseReader reader;
  StreamJudge judge(record, metrics);
  while (!judge.done()) {
    const auto piece = co_await answer.stream->read();
    if (!piece) co_return fail(why_it_ended(answer, piece.error()));
    if (piece->empty())
      co_return fail(Errc::StreamBroken, "the engine's stream ended without [DONE]");
    answer.prefill_delivered();
    reader.feed(*piece);
    while (true) {
      const std::string_view events = judge.take(reader, *piece);
      if (!events.empty()) {
        // Only now, so that whatever fails before the first event is a plain HTTP error.
        if (record.status == 0) {
          if (auto begun = co_await begin_stream(answer, sink, record); !begun) co_return begun;
        }
        record.response_bytes += events.size();
        if (auto written = co_await sink.write(events); !written) co_return written;
      }
      if (judge.failure()) co_return fail(*judge.failure());
      if (events.empty() || judge.done()) break;
    }
  }
  const auto ended = co_await sink.end();
  // What follows [DONE] is the end of the message. Reading it lets the connection be used again; it
  // is not worth much waiting.
  if (!answer.stream->done()) co_await answer.stream->await_end(kEndPatience);
  co_return ended;
}

awaitable<Result<void>> relay_whole(handoff::Answer& answer, std::size_t limit, ResponseSink& sink,
                                    RequestRecord& record, ModelMetrics& metrics) {
  const auto body = co_await answer.stream->read_all(limit);
  if (!body) co_return fail(why_it_ended(answer, body.error()));
  answer.prefill_delivered();
  const auto object = wire::JsonObject::parse(*body);
  if (!object) co_return fail(Errc::EngineProtocol, "the engine's answer is not a JSON object");
  if (auto judged = judge_whole(*object, *body); !judged) co_return judged;
  record.usage = engine::usage_of(*object);
  record.on_token(metrics);
  record.status = kOk;
  record.response_bytes = body->size();
  co_return co_await sink.respond(kOk, headers_for_client(answer.stream->take_headers()), *body);
}

}  // namespace baton::pipeline
