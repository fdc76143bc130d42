// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace baton::net {

// Role. Reports that a file may have changed: written in place, replaced by rename, reached through
//   swapped symbolic links (Kubernetes), created or removed.
// Confinement. One I/O thread.
// Lifetime. Nothing is called after stop() or the destructor; the callback may do either.
// Invariants. Every directory on the path is watched, so that any part of it may be removed and
//   made again. If a watch cannot be had, the file is checked every kPoll.
// Permitted imprecision. A burst of changes is one call, kQuiet after its last and at most kLongest
//   after its first. A call may come without a change, never the other way round.
class FileWatch {
 public:
  static constexpr std::chrono::milliseconds kQuiet{50};
  static constexpr std::chrono::milliseconds kLongest{500};
  static constexpr std::chrono::milliseconds kPoll{1'000};

  FileWatch(boost::asio::io_context& io, std::string path, std::function<void()> changed);
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  ~FileWatch();

  // Call once, before the file is first read: only later changes are reported. The file need not
  // exist. An error says that the system gives no notice of changes: the file is then checked every
  // kPoll instead.
  Result<void> start();
  void stop();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace baton::net
