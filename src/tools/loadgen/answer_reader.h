// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/http_message.h"
#include "wire/sse_reader.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::loadgen {

// Which part of an answer is kept, for the next turn.
enum class Keep { Nothing, Text };

// Usage as an endpoint reports it.
struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::optional<std::uint64_t> cached_tokens;
};

// Role. Reads one answer as it comes: its tokens, its usage, and whether it ended well.
// Confinement. One thread.
// Lifetime. Good for one answer.
// Invariants. What it finds depends on the bytes alone, not on how they were cut. Of an answer that
//   is not kept it holds no more than an unfinished event, of an error no more than a few KiB.
class AnswerReader {
 public:
  // `on_token`: an event with something new in it came.
  AnswerReader(Keep keep, std::function<void()> on_token)
      : keep_(keep), on_token_(std::move(on_token)) {}

  void on_head(const wire::ResponseHead& head);
  void on_body(std::string_view bytes);

  int status() const { return status_; }
  std::optional<std::chrono::seconds> retry_after() const { return retry_after_; }
  const std::string& prefill_worker() const { return prefill_worker_; }
  const std::string& decode_worker() const { return decode_worker_; }
  std::uint64_t events() const { return events_; }
  const std::optional<Usage>& usage() const { return usage_; }
  const std::string& text() const { return text_; }
  const std::vector<std::uint32_t>& ids() const { return ids_; }
  // The stream said that it was complete.
  bool done() const { return done_; }
  // Code or status of an error in the stream, or of an error answer.
  const std::string& error() const { return error_; }

 private:
  void on_event(std::string_view data);
  bool read_choice(std::string_view choice);
  void read_usage(std::string_view text);

  Keep keep_;
  std::function<void()> on_token_;
  wire::SseReader events_reader_;
  int status_ = 0;
  std::optional<std::chrono::seconds> retry_after_;
  std::string prefill_worker_;
  std::string decode_worker_;
  std::uint64_t events_ = 0;
  std::optional<Usage> usage_;
  std::string text_;
  std::vector<std::uint32_t> ids_;
  std::string error_body_;
  std::string error_;
  bool stream_ = false;
  bool done_ = false;
};

}  // namespace baton::loadgen
