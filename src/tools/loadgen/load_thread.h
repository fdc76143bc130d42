// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "libs/locks/mutex.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "tools/loadgen/budget.h"
#include "tools/loadgen/client.h"
#include "tools/loadgen/options.h"
#include "tools/loadgen/request_body.h"
#include "tools/loadgen/tally.h"
#include "tools/loadgen/workload.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

namespace baton::loadgen {

// State shared by the threads of a run.
struct Run {
  const Plan& plan;
  const Workload& workload;
  const RequestBody& bodies;
  const Server& server;
  Budget& budget;
  std::chrono::steady_clock::time_point start;
};

// Role. One thread's share of the load: its lanes of a closed loop, or every n-th arrival of an open
//   one.
// Confinement. Made, ended and joined by one thread; the rest runs on its own.
// Lifetime. The run outlives it.
class LoadThread {
 public:
  LoadThread(const Run& run, unsigned index);
  ~LoadThread();
  LoadThread(const LoadThread&) = delete;
  LoadThread& operator=(const LoadThread&) = delete;

  void start();
  // Any thread: nothing new is sent; what is under way goes on.
  void finish();
  // Any thread: what is under way ends as Cut.
  void cut();
  // Any thread: nothing is left to do.
  bool idle() const { return tasks_.running() == 0; }
  // An exception that reached a task's end, for the thread that waits for the run.
  std::exception_ptr problem() const;
  void join();

  Tally tally() const;
  // The same without its samples and its series, which are large.
  struct Live {
    std::uint64_t sent = 0;
    std::uint64_t ended = 0;
    std::uint64_t refused = 0;
    std::uint64_t failed = 0;
    LogHistogram ttft;
  };
  void add_to(Live& live) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Request;

  awaitable<void> lane();
  awaitable<void> arrivals();
  awaitable<void> conversation_at(std::uint64_t number, Clock::time_point due);
  // How it ended, and how long the endpoint wants to be left alone.
  struct Outcome {
    Ending ending = Ending::Completed;
    std::chrono::milliseconds leave_alone{0};
  };
  awaitable<Outcome> converse(std::uint64_t number, Clock::time_point due);
  awaitable<Outcome> ask(const Conversation& talk, const Turn& turn, std::vector<Piece>& said,
                         Clock::time_point due, std::uint64_t ticket);
  // False where the run is over.
  awaitable<bool> sleep_until(Clock::time_point time);
  std::chrono::nanoseconds since_start() const { return Clock::now() - run_.start; }

  const Run run_;
  const unsigned index_;
  boost::asio::io_context io_{1};
  net::Deadlines deadlines_{io_};
  Cancellation finish_;
  Cancellation cut_;
  Client client_;
  net::TaskGroup tasks_;
  mutable locks::Mutex mutex_;
  Tally tally_ GUARDED_BY(mutex_);
  std::exception_ptr problem_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace baton::loadgen
