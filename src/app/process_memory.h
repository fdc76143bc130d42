// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <cstddef>
#include <string>

namespace baton::app {

// Half of the process's memory limit: of the smallest limit of its control groups (version 1 or 2),
// or else of the machine's memory. The other half is for uncounted memory: connections, short
// requests, the KV index, tokenizers and their caches. `root` is where /proc and /sys are.
std::size_t automatic_memory_limit(const std::string& root);

// Blocks of a megabyte and more go back to the kernel as soon as they are freed. By default glibc
// stops doing that once it has seen a large one freed, and a burst of long bodies stays for ever.
void give_long_blocks_back();

// Role. Returns freed memory to the kernel, short blocks included, after much was freed.
// Confinement. The control thread, but for soon().
// Lifetime. Outlives the callers of soon().
class MemoryTrim {
 public:
  explicit MemoryTrim(boost::asio::io_context& control) : control_(control), timer_(control) {}

  // Any thread. A second later, and once for all calls until then: it takes milliseconds, during
  // which threads may have to wait for their own memory.
  void soon();
  void stop();

 private:
  boost::asio::io_context& control_;
  boost::asio::steady_timer timer_;
  std::atomic<bool> wanted_{false};
  bool stopped_ = false;
};

}  // namespace baton::app
