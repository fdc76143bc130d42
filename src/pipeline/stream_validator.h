// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "engine/shared/dialect.h"
#include "engine/shared/stream_continuity.h"
#include "engine/shared/stream_event_reader.h"
#include "pipeline/request_record.h"
#include "wire/sse_reader.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::pipeline {

// Role. Validates the events of one stream and decides which bytes go on to the client: the
//   worker's, except for facts that only Baton knows (what the prefill worker reused of the prompt)
//   and fields that only Baton asked for (token ids).
// Confinement. One I/O thread; take() may run on another one while that waits for it.
// Invariants. Nothing behind an event that is not sound goes on. A success has every event sound,
//   some choice finished, and [DONE].
class StreamValidator {
 public:
  // `continuity`: set if another worker may continue the stream.
  StreamValidator(RequestRecord& record, ModelMetrics& metrics,
                  std::unique_ptr<engine::StreamContinuity> continuity);

  // The next sound events in `reader`, whose last piece is `piece`; empty if there are no more, or
  // waits_for_prefill().
  std::string_view take(wire::SseReader& reader, std::string_view piece);

  // The prefill's report on the prompt is needed now, and set_prefill() must be called.
  bool waits_for_prefill() const { return held_.has_value(); }
  void set_prefill(std::shared_ptr<const engine::PrefillOutcome> prefill) {
    prefill_ = std::move(prefill);
  }
  // Two workers serve: usage is merged from both.
  void expect_prefill(bool handed_off) { handed_off_ = handed_off; }
  // The client wants the prompt's log-probabilities, which only the prefill worker knows: they go
  // into the first event.
  void expect_input_logprobs() { input_logprobs_ = true; }

  // Bytes that take() reads besides those in the reader.
  std::size_t held() const {
    return (held_ ? held_->size() : 0) +
           (input_logprobs_ && prefill_ ? prefill_->input_logprobs.size() : 0);
  }

  bool done() const { return done_; }
  // A piece of the answer has been taken, be it without a token.
  bool begun() const { return begun_; }
  // A token or a usage has been taken since the last call: the progress that a worker is waited
  // for.
  bool progressed() { return std::exchange(progressed_, false); }
  const std::optional<Error>& failure() const { return failure_; }

  // The worker failed; another one goes on, or begins again if nothing was taken yet.
  void restart();
  // All that belongs to the answer has been taken, or put in.
  void complete() { done_ = true; }
  engine::StreamContinuity* continuity() { return continuity_.get(); }

 private:
  enum class Passage { AsItIs, Changed, Dropped, Held, Stop };
  Passage accept(std::string_view data);
  Passage rewrite(std::string_view data, bool has_usage);
  void bound_cached();

  RequestRecord& record_;
  ModelMetrics& metrics_;
  std::unique_ptr<engine::StreamContinuity> continuity_;
  engine::StreamEventReader events_;
  std::shared_ptr<const engine::PrefillOutcome> prefill_;
  bool handed_off_ = false;
  bool input_logprobs_ = false;
  bool begun_ = false;
  bool progressed_ = false;
  bool finished_ = false;
  bool done_ = false;
  std::optional<std::string> held_;  // data of an event that waits for the prefill
  std::string changed_;              // the bytes of an event that was rewritten
  std::optional<Error> failure_;
};

}  // namespace baton::pipeline
