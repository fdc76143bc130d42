// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"
#include "wire/json_object.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::engine {

// Role. Joins the streams of several workers for one answer, and records the state that the next
//   worker needs. Sees each event on its way to the client.
// Confinement. One thread.
// Lifetime. That of the client's request, whose body it does not keep.
// Invariants. A token counts as produced once the client has seen its text or later text; the
//   others are produced again. Holds at most kMostIds bytes of ids.
class StreamContinuity {
 public:
  static constexpr std::size_t kMostIds = 8 * 1024 * 1024;

  // Requires: the worker was asked for token ids (ClientCall::with_token_ids).
  explicit StreamContinuity(const ClientCall& call);

  // The event to send to the client.
  struct Passage {
    enum class Kind { AsItIs, Changed, Dropped };
    Kind kind;
    std::string event;  // Changed: all its bytes
  };
  // `data` is that of the worker's next event; [DONE], errors and malformed ones pass as they are.
  Passage pass(std::string_view data);

  // Why the stream cannot be continued from here; nullopt: it can.
  std::optional<std::string> why_not() const;
  // Value for ClientCall::progress. Null if no token has reached the client: the request is then
  // sent again unchanged. It grows while the stream goes on. Requires: !why_not().
  const Progress* progress() const;
  // The events that follow are those of a worker that continues from progress().
  void resume();

  // How many of the answer's tokens earlier workers produced.
  std::int64_t before() const { return before_; }
  // The last token has been passed on.
  bool finished() const { return finished_; }
  // Events that the client still expects after the last token: usage, if the client asked for it,
  // and [DONE]. nullopt if the stream has not come that far.
  std::optional<std::string> closing_events() const;

 private:
  void read(const wire::JsonObject& chunk);
  void read_choice(const wire::JsonObject& chunk, const wire::JsonObject& choice);
  void take_ids(std::string_view raw, bool has_text);
  Passage rewrite(const wire::JsonObject& chunk) const;
  // nullopt where nothing of it is left.
  std::optional<std::string> rewrite_choice(const wire::JsonObject& choice) const;
  void block(std::string reason);

  bool client_wants_ids_;
  bool client_wants_usage_;
  std::optional<std::int64_t> limit_;  // of tokens
  std::optional<std::string> blocked_;
  Progress progress_;
  std::string pending_;  // ids without text so far, as in Progress
  std::int64_t pending_count_ = 0;
  std::int64_t prompt_tokens_ = 0;
  bool began_ = false;
  bool resumed_ = false;
  bool finished_ = false;
  bool usage_passed_ = false;
  std::int64_t before_ = 0;  // tokens of earlier workers
  // Copied from the first worker's stream.
  std::string id_;
  std::string created_;
  std::string frame_;  // the members that all chunks share, a comma behind each
};

}  // namespace baton::engine
