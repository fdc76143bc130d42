// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/stream_validator.h"

#include "engine/shared/engine_error.h"
#include "engine/shared/usage_merge.h"

#include <algorithm>
#include <utility>

namespace baton::pipeline {

StreamValidator::StreamValidator(RequestRecord& record, ModelMetrics& metrics,
                                 std::unique_ptr<engine::StreamContinuity> continuity)
    : record_(record), metrics_(metrics), continuity_(std::move(continuity)) {}

void StreamValidator::restart() {
  // Also if no token came yet: the client may know the first worker's stream id already.
  if (continuity_ && !continuity_->why_not()) continuity_->resume();
  prefill_ = nullptr;
  begun_ = finished_ = progressed_ = false;
  held_.reset();
  failure_.reset();
}

std::string_view StreamValidator::take(wire::SseReader& reader, std::string_view piece) {
  if (held_ && prefill_) {
    const std::string data = *std::exchange(held_, std::nullopt);
    if (rewrite(data, true) == Passage::Changed) return changed_;
  }
  const char* begin = nullptr;
  const char* end = nullptr;
  const auto range = [&] {
    return begin ? std::string_view(begin, static_cast<std::size_t>(end - begin))
                 : std::string_view();
  };
  while (!failure_ && !done_ && !held_) {
    const auto event = reader.next();
    if (!event) break;
    const Passage passage = accept(event->data);
    if (passage == Passage::Stop || passage == Passage::Held) break;
    if (passage == Passage::Dropped) {
      if (begin) return range();
      continue;
    }
    if (passage == Passage::Changed) {
      if (!begin) return changed_;
      changed_.insert(0, range());
      return changed_;
    }
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
  return range();
}

StreamValidator::Passage StreamValidator::accept(std::string_view data) {
  if (data.empty()) return Passage::AsItIs;  // a comment
  const engine::StreamEvent event = events_.read(data);
  switch (event.kind) {
    case engine::StreamEvent::Kind::Malformed:
      failure_.emplace(Errc::EngineProtocol, "the engine sent an event that is not JSON");
      return Passage::Stop;
    case engine::StreamEvent::Kind::Error:
      failure_ = engine::read_stream_error(
          data, begun_ ? engine::StreamBegun::Yes : engine::StreamBegun::No);
      return Passage::Stop;
    case engine::StreamEvent::Kind::Aborted:
      failure_.emplace(Errc::EngineFailed, "the engine gave the answer up");
      return Passage::Stop;
    case engine::StreamEvent::Kind::Done:
      if (!finished_) {
        failure_.emplace(Errc::EngineFailed,
                         "the engine ended the stream before the answer was finished");
        return Passage::Stop;
      }
      done_ = true;
      return Passage::AsItIs;
    case engine::StreamEvent::Kind::Chunk:
      break;
  }
  const bool first = !std::exchange(begun_, true);
  // Some engines report usage with every event, also with mere keep-alives.
  progressed_ |= event.has_token || (event.usage && event.usage->completion_tokens > 0);
  if (event.has_token) record_.on_token(metrics_);
  if (event.has_finish) finished_ = true;
  if (event.usage) {
    record_.usage = event.usage;
    if (continuity_) {
      record_.usage->prompt_tokens -= continuity_->before();
      record_.usage->completion_tokens += continuity_->before();
      bound_cached();
    }
  }
  // An answer that another worker went on with has had them already.
  const bool logprobs_due =
      first && input_logprobs_ && (!continuity_ || continuity_->before() == 0);
  const bool by_two = handed_off_ && (event.usage.has_value() || logprobs_due);
  if (by_two && !prefill_) {
    held_ = data;
    return Passage::Held;
  }
  if (!by_two && !continuity_) return Passage::AsItIs;
  return rewrite(data, by_two);
}

// A worker that continues an answer may have cached the beginning of it, too.
void StreamValidator::bound_cached() {
  if (!record_.usage || !record_.usage->cached_tokens) return;
  const std::int64_t most = std::max<std::int64_t>(0, record_.usage->prompt_tokens);
  record_.usage->cached_tokens = std::min(*record_.usage->cached_tokens, most);
}

StreamValidator::Passage StreamValidator::rewrite(std::string_view data, bool has_usage) {
  std::optional<std::string> merged;
  if (has_usage && handed_off_) {
    static const engine::Usage kNone;
    const engine::Usage& prefill = prefill_->usage ? *prefill_->usage : kNone;
    merged = engine::rewrite_usage(data, prefill, engine::AnswerForm::Streamed);
    if (input_logprobs_) {
      auto with_logprobs =
          engine::merge_input_logprobs(merged ? *merged : data, prefill_->input_logprobs);
      if (with_logprobs) {
        merged = std::move(with_logprobs);
        input_logprobs_ = false;
      }
    }
    if (record_.usage) record_.usage->cached_tokens = prefill.cached_tokens;
    bound_cached();
  }
  const std::string_view text = merged ? std::string_view(*merged) : data;
  if (continuity_) {
    auto passage = continuity_->pass(text);
    using Kind = engine::StreamContinuity::Passage::Kind;
    if (passage.kind == Kind::Dropped) return Passage::Dropped;
    if (passage.kind == Kind::Changed) {
      changed_ = std::move(passage.event);
      return Passage::Changed;
    }
  }
  if (!merged && !has_usage) return Passage::AsItIs;
  changed_ = "data: " + std::string(text) + "\n\n";
  return Passage::Changed;
}

}  // namespace baton::pipeline
