// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/relay.h"

#include "engine/shared/engine_error.h"
#include "engine/shared/usage_merge.h"
#include "pipeline/forwarding.h"
#include "pipeline/stream_validator.h"
#include "wire/http_status.h"
#include "wire/json_object.h"
#include "wire/sse_reader.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::pipeline {
namespace {

using wire::kOk;
constexpr std::chrono::milliseconds kEndPatience{100};

// A whole answer is a success if it says how each choice ended, and none of them by giving up.
// Returns the usage that it reports, if it does.
Result<std::optional<engine::Usage>> judge_whole(std::string_view text) {
  const auto answer = wire::JsonObject::parse(text);
  if (!answer) return fail(Errc::EngineProtocol, "the engine's answer is not a JSON object");
  const auto error = answer->find("error");
  if (error && *error != "null")
    return fail(engine::read_stream_error(text, engine::StreamBegun::Yes));
  const auto finish = engine::finish_reason_of(*answer);
  if (!finish) return fail(finish.error());
  if (engine::means_failure(*finish))
    return fail(Errc::EngineFailed, "the engine gave the answer up");
  return engine::usage_of(*answer);
}

void add_trail(wire::Headers& headers, const RequestRecord& record, bool tell_workers) {
  if (record.trace.bypassed) headers.add("X-Bypass-Remote-Prefill", "true");
  if (!tell_workers) return;
  headers.add("X-Baton-Request-Id", record.id);
  if (!record.trace.prefill.worker.empty())
    headers.add("X-Baton-Prefill-Worker", record.trace.prefill.worker);
  if (!record.trace.decode.worker.empty())
    headers.add("X-Baton-Decode-Worker", record.trace.decode.worker);
}

wire::Headers own_headers(bool stream) {
  wire::Headers headers;
  headers.add("Content-Type", stream ? "text/event-stream; charset=utf-8" : "application/json");
  return headers;
}

// Role. One stream on its way to the client. Steps that run once per stream, or never, have
//   coroutines of their own: the one that waits for the next token stays for as long as the stream
//   runs, and every await in it costs memory.
// Confinement. One I/O thread.
class StreamRelay {
 public:
  StreamRelay(handoff::UpstreamResponse& answer, Delivery delivery, ResponseSink& sink,
              RequestRecord& record, ModelMetrics& metrics)
      : answer_(answer),
        delivery_(std::move(delivery)),
        sink_(sink),
        record_(record),
        validator_(record, metrics, std::move(delivery_.continuity)) {
    validator_.expect_prefill(answer.handed_off());
    if (delivery_.input_logprobs) validator_.expect_input_logprobs();
  }

  // Keeps itself until its end.
  static awaitable<Result<void>> run(std::unique_ptr<StreamRelay> self) {
    handoff::UpstreamResponse& answer = self->answer_;
    StreamValidator& validator = self->validator_;
    while (!answer.whole() && !validator.done()) {
      if (self->pass_on()) co_await self->flow();
      if (self->thrown_) std::rethrow_exception(std::exchange(self->thrown_, nullptr));
      if (!self->written_) co_return std::exchange(self->written_, {});
      std::optional<Error> failure = self->failure();
      if (const auto rest = std::exchange(self->unwritten_, {}); !failure && !rest.empty()) {
        if (auto written = co_await self->sink_.write_rest(rest); !written) co_return written;
      }
      while (!failure && !(failure = validator.failure()) && !validator.done()) {
        if (validator.waits_for_prefill()) co_await self->wait_for_prefill();
        const std::string_view events = self->is_short()
                                            ? validator.take(self->reader_, *self->piece_)
                                            : co_await self->take_elsewhere(*self->piece_);
        self->note_progress();
        if (!events.empty()) {
          if (auto written = co_await self->write(events); !written) co_return written;
        } else if (!validator.waits_for_prefill() && !validator.failure() && !validator.done()) {
          break;
        }
      }
      if (!failure) continue;
      if (auto recovered = co_await self->recover(std::move(*failure)); !recovered)
        co_return recovered;
    }
    co_return co_await self->finish();
  }

 private:
  // Passes on all that has come, for as long as that needs no waiting. True if nothing is left of it:
  // more must be received. False: run() goes on with piece_, which the reader has.
  bool pass_on() {
    while (auto piece = answer_.stream().next()) {
      piece_ = *std::move(piece);
      if (!piece_ || piece_->empty()) return false;
      reader_.feed(*piece_);
      if (record_.status == 0 || !is_short()) return false;
      while (true) {
        const std::string_view events = validator_.take(reader_, *piece_);
        note_progress();
        if (!events.empty() && !write_now(events)) return false;
        if (validator_.failure() || validator_.done() || validator_.waits_for_prefill())
          return false;
        if (events.empty()) break;
      }
    }
    return true;
  }
  // False if the client does not take them at once.
  bool write_now(std::string_view events) {
    record_.response_bytes += events.size();
    auto written = sink_.write_now(events);
    if (!written) {
      unwritten_ = events;
      return false;
    }
    written_ = *std::move(written);
    return written_.has_value();
  }
  void note_progress() {
    if (validator_.begun()) answer_.first_token();
    if (validator_.progressed()) answer_.stream().progress();
    answer_.produced(record_.events);
  }
  std::optional<Error> failure() const {
    if (!piece_) return piece_.error();
    if (piece_->empty())
      return Error(Errc::StreamBroken, "the engine's stream ended without [DONE]");
    return std::nullopt;
  }

  // Receives and passes on, until that is not all there is to do. While a stream runs, this is what
  // it waits in: no coroutine is resumed for an event, and this one is none.
  awaitable<void> flow() {
    const auto begin = [this](auto resume) { receive(std::move(resume)); };
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        begin, boost::asio::use_awaitable);
  }
  // `resume` keeps the coroutine, and with it this relay.
  template <class Resume>
  void receive(Resume resume) {
    answer_.stream().receive([this, resume = std::move(resume)]() mutable {
      bool all = false;
      try {
        all = pass_on();
      } catch (...) {
        thrown_ = std::current_exception();
      }
      if (all) {
        receive(std::move(resume));
      } else {
        std::move(resume)();
      }
    });
  }

  // An event in many pieces may be long, and so may the text that is merged into one.
  bool is_short() const { return reader_.held() + validator_.held() <= net::CpuPool::kInPlace; }
  awaitable<std::string_view> take_elsewhere(std::string_view piece) {
    co_return co_await delivery_.cpu.run([&] { return validator_.take(reader_, piece); });
  }
  // Not a coroutine for all events but the first.
  awaitable<Result<void>> write(std::string_view events) {
    record_.response_bytes += events.size();
    return record_.status == 0 ? write_first(events) : sink_.write(events);
  }
  // Only now, so that whatever fails before the first event is a plain HTTP error.
  awaitable<Result<void>> write_first(std::string_view events) {
    wire::Headers headers =
        answer_.whole() ? own_headers(true) : headers_for_client(answer_.stream().take_headers());
    add_trail(headers, record_, delivery_.tell_workers);
    record_.status = kOk;
    if (auto begun = co_await sink_.begin(kOk, headers); !begun) co_return begun;
    co_return co_await sink_.write(events);
  }

  awaitable<void> wait_for_prefill() {
    co_await answer_.await_prefill(delivery_.input_logprobs);
    validator_.set_prefill(answer_.prefill());
  }

  // Another worker begins again or goes on.
  awaitable<Result<void>> recover(Error failure) {
    engine::StreamContinuity* const continuity = validator_.continuity();
    if (continuity && continuity->closing_events()) {
      // All tokens are there; Baton can write the missing events itself.
      const std::string closing = *continuity->closing_events();
      validator_.complete();
      co_return co_await write(closing);
    }
    const engine::Progress* progress = nullptr;
    if (continuity && !continuity->why_not()) {
      progress = continuity->progress();
    } else {
      answer_.forbid_migration();
    }
    if (auto recovered = co_await answer_.recover(std::move(failure), progress); !recovered)
      co_return recovered;
    validator_.restart();
    validator_.expect_prefill(answer_.handed_off());
    reader_ = wire::SseReader();
    co_return Result<void>{};
  }

  awaitable<Result<void>> finish() {
    if (answer_.whole()) {
      if (auto written = co_await write_whole(); !written) co_return written;
      co_return co_await sink_.end();
    }
    answer_.finished();
    const auto ended = co_await sink_.end();
    // After [DONE] comes the end of the message. Reading it lets the connection be used again; it
    // is not worth much waiting.
    if (!answer_.stream().done()) co_await answer_.stream().await_end(kEndPatience);
    co_return ended;
  }

  // The prefill ended the request: its answer is the client's, as a stream.
  awaitable<Result<void>> write_whole() {
    const std::size_t size = answer_.whole()->size();
    // Not run_sized(): it takes apart all of the answer and copies it, ten times the work of a
    // check.
    const auto events = co_await delivery_.cpu.run([this] {
      return engine::as_event_stream(delivery_.api, *answer_.whole(), delivery_.include_usage);
    });
    if (!events) co_return fail(events.error());
    wire::SseReader reader;
    reader.feed(*events);
    validator_.expect_prefill(false);
    while (true) {
      const std::string_view bytes =
          co_await delivery_.cpu.run_sized(size, [&] { return validator_.take(reader, *events); });
      if (bytes.empty()) break;
      if (auto written = co_await write(bytes); !written) co_return written;
    }
    if (validator_.failure()) co_return fail(*validator_.failure());
    co_return Result<void>{};
  }

  handoff::UpstreamResponse& answer_;
  Delivery delivery_;
  ResponseSink& sink_;
  RequestRecord& record_;
  StreamValidator validator_;
  wire::SseReader reader_;
  Result<std::string_view> piece_;  // the last, or why there is none
  std::string_view unwritten_;      // events of it of which the client has taken only a part
  Result<void> written_;            // the last write that did not wait
  std::exception_ptr thrown_;       // by pass_on()
};

// The text for the client: the prefill's facts of the prompt are merged in.
void merge_legs(const engine::PrefillOutcome& prefill, std::string& text) {
  if (auto merged = engine::rewrite_usage(text, prefill.usage.value_or(engine::Usage{}),
                                          engine::AnswerForm::Whole))
    text = std::move(*merged);
  if (auto merged = engine::merge_input_logprobs(text, prefill.input_logprobs))
    text = std::move(*merged);
}

std::optional<engine::Usage> usage_in(std::string_view text) {
  const auto object = wire::JsonObject::parse(text);
  return object ? engine::usage_of(*object) : std::nullopt;
}

awaitable<Result<void>> relay_whole(handoff::UpstreamResponse& answer, Delivery delivery,
                                    ResponseSink& sink, RequestRecord& record,
                                    ModelMetrics& metrics) {
  std::string text;
  wire::Headers headers;
  bool usage_known = false;
  while (!answer.whole()) {
    auto body = co_await answer.stream().read_all(delivery.response_bytes);
    Result<std::optional<engine::Usage>> judged = std::nullopt;
    if (!body) {
      judged = fail(body.error());
    } else {
      judged =
          co_await delivery.cpu.run_sized(body->size(), [&body] { return judge_whole(*body); });
    }
    if (judged) {
      answer.first_token();
      text = std::move(*body);
      record.usage = *judged;
      usage_known = !answer.handed_off();  // what is merged in below changes it
      if (answer.handed_off()) {
        co_await answer.await_prefill(delivery.input_logprobs);
        const auto prefill = answer.prefill();
        co_await delivery.cpu.run_sized(text.size() + prefill->input_logprobs.size(), [&] {
          merge_legs(*prefill, text);
          return true;
        });
      }
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
  if (!usage_known) {
    record.usage = co_await delivery.cpu.run_sized(text.size(), [&text] { return usage_in(text); });
  }
  record.on_token(metrics);
  record.status = kOk;
  record.response_bytes = text.size();
  add_trail(headers, record, delivery.tell_workers);
  co_return co_await sink.respond(kOk, headers, text);
}

}  // namespace

// Not a coroutine: while a stream runs, every nested one costs memory.
awaitable<Result<void>> relay(handoff::UpstreamResponse& answer, Delivery delivery,
                              ResponseSink& sink, RequestRecord& record, ModelMetrics& metrics) {
  if (record.stream) {
    return StreamRelay::run(
        std::make_unique<StreamRelay>(answer, std::move(delivery), sink, record, metrics));
  }
  return relay_whole(answer, std::move(delivery), sink, record, metrics);
}

}  // namespace baton::pipeline
