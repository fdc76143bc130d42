// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/worker_booking.h"
#include "scheduling/worker_requirements.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::scheduling {

// How one worker was chosen.
struct Decision {
  Part part = Part::Both;
  std::size_t attempt = 1;
  std::chrono::system_clock::time_point at;
  Choice choice;
  std::string given_back = {};  // why the worker did not get the request after all; empty: it did
};

// How long a request waited before its first worker was chosen, and why.
struct Waited {
  std::string policy_class;  // empty: it did not have to queue
  std::size_t ahead = 0;     // of its class, when it came
  std::chrono::nanoseconds queued{0};
  std::chrono::nanoseconds followed{0};  // wait for another request with the same prefix
  std::string refused = {};              // why it was not let through; empty: it was
};

// The result of a request.
struct Outcome {
  int status = 0;
  std::string error;  // its label; empty: none
  std::size_t retries = 0;
  std::size_t migrations = 0;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> cached_tokens;  // as the engine said
  std::optional<std::chrono::nanoseconds> time_to_first_token;
};

// All that was decided about one request.
struct Decided {
  std::string request_id;
  std::string model;
  std::chrono::system_clock::time_point begun;
  std::uint64_t prompt_tokens = 0;
  std::string
      bypass;  // whether the decode worker was to compute the prompt; empty: no decision was made
  Waited waited;
  std::vector<Decision> decisions;
  std::optional<Outcome> outcome;  // absent: it still runs
};

// Role. Remembers the last requests and the reasons for their choices.
// Confinement. Any thread; one lock, held to write a few words or to copy one request out.
// Lifetime. Outlives requests.
// Invariants. Never more than `most` requests, the oldest goes first. If two have one id, a look-up
//   finds the later one.
class DecisionLog {
 public:
  explicit DecisionLog(std::size_t most) : most_(most) {}

  // Role. Writes for one request. Empty: nothing is recorded.
  // Confinement. The request's I/O thread.
  class Page {
   public:
    Page() = default;
    explicit operator bool() const { return decided_ != nullptr; }
    void bypass(std::string_view label);
    void waited(Waited waited);
    void chosen(Decision decision);
    // The worker chosen last does not get the request.
    void given_back(std::string_view why);
    void close(Outcome outcome);

   private:
    friend class DecisionLog;
    Page(DecisionLog& log, std::shared_ptr<Decided> decided)
        : log_(&log), decided_(std::move(decided)) {}
    Decided& decided() REQUIRES(log_->mutex_) { return *decided_; }

    DecisionLog* log_ = nullptr;
    std::shared_ptr<Decided> decided_;  // its contents are for decided() only
    bool written_ = false;              // the last choice was
  };

  Page open(std::string request_id, std::string model, std::uint64_t prompt_tokens);
  std::optional<Decided> find(std::string_view request_id) const;
  // Ids, the latest first.
  std::vector<std::string> recent(std::size_t most) const;
  std::size_t size() const;
  std::size_t most() const { return most_; }

 private:
  const std::size_t most_;
  mutable locks::Mutex mutex_;
  std::deque<std::shared_ptr<Decided>> ring_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::shared_ptr<Decided>> by_id_ GUARDED_BY(mutex_);
};

}  // namespace baton::scheduling
