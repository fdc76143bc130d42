// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/cpu_pool.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace baton::net {
namespace {

// Enough for a thread that serves to be put before these, little enough to leave them a share of
// cores that are never idle.
constexpr int kNicer = 5;

// Linux keeps a niceness for each thread; a new one has that of its process. If it cannot be set, the
// work is done all the same.
void yield_to_others() {
  const auto self = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + kNicer);
}

}  // namespace

CpuPool::CpuPool(std::size_t threads) : guard_(boost::asio::make_work_guard(io_)) {
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "baton-cpu");
      yield_to_others();
      io_.run();
    });
  }
}

CpuPool::~CpuPool() { join(); }

void CpuPool::join() {
  guard_.reset();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace baton::net
