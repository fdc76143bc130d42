// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace baton::kvcache {

// Something with descriptors that has work when they are readable, and at times.
class Source {
 public:
  virtual ~Source() = default;
  // Does a bounded part of it; whether there is more.
  virtual bool work() = 0;
  // Its time has come.
  virtual void on_time() = 0;
};

// Role. Waits for thousands of ZeroMQ sockets at the cost of the ready ones; zmq_poll looks at each
//   of them each time. A ZeroMQ descriptor only signals a change since the socket was last used, so
//   a source stays ready until it has reported that nothing is left.
// Confinement. One thread, except for wake().
// Lifetime. Outlives its sources, which are removed before their descriptors are closed.
class Readiness {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Readiness();
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // A source may have several descriptors. It is ready at first. False: there is no room for it.
  bool add(int descriptor, Source& source);
  void remove(int descriptor, Source& source);
  // After its sockets were used in any other way than by its work.
  void make_ready(Source& source);

  // The one time at which the source is called; nothing: never.
  void set_time(Source& source, std::optional<Time> time);

  // Waits until a source is ready or its time has come, and lets some of them work once, those
  // first that have been ready for longest.
  void run_once();
  // Any thread: run_once() returns soon.
  void wake();

 private:
  int wait_ms() const;

  int epoll_ = -1;
  int wake_ = -1;
  std::deque<Source*> ready_;
  std::unordered_set<Source*> queued_;
  std::set<std::pair<Time, Source*>> times_;
  std::unordered_map<Source*, Time> time_of_;
};

}  // namespace baton::kvcache
