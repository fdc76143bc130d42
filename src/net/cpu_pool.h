// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace baton::net {

// Role. Threads for work that would block an I/O thread. Their priority is lower, but not so low
//   that they starve where cores are never idle. Work longer than a fraction of a millisecond
//   should yield now and then (std::this_thread::yield): Linux may let a thread that has just been
//   woken run to its next tick before it schedules a waiting one.
// Confinement. Any thread; the result comes back on the waiting coroutine's own thread.
// Lifetime. Call join() before the io_contexts of the waiting coroutines are destroyed.
// Invariants. First come, first served. Accepted work is always done, and its coroutine always
//   resumed; cancelled work must notice that by itself.
class CpuPool {
 public:
  explicit CpuPool(std::size_t threads);
  ~CpuPool();
  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;

  // Going through a text of up to this size takes no longer than the way to another thread and back.
  static constexpr std::size_t kInPlace = std::size_t{64} * 1024;

  // Runs `work` on one of the pool's threads and returns its result. Rethrows its exception.
  template <class Work>
  boost::asio::awaitable<std::invoke_result_t<Work&>> run(Work work);

  // The same for work over `bytes` of text: runs in place if they are few.
  template <class Work>
  boost::asio::awaitable<std::invoke_result_t<Work&>> run_sized(std::size_t bytes, Work work);

  std::size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // Completes the accepted work, then ends the threads.
  void join();

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::atomic<std::size_t> waiting_{0};
  std::vector<std::thread> threads_;
};

template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work&>> CpuPool::run(Work work) {
  using Made = std::invoke_result_t<Work&>;
  struct Outcome {
    std::optional<Made> made;
    std::exception_ptr thrown;
  };
  Outcome outcome;  // in this frame, which stays until it is resumed
  const boost::asio::any_io_executor home = co_await boost::asio::this_coro::executor;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const auto begin = [this, &work, &outcome, &home](auto handler) {
    boost::asio::post(io_, [this, &work, &outcome, home, guard = boost::asio::make_work_guard(home),
                            handler = std::move(handler)]() mutable {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      try {
        outcome.made.emplace(work());
      } catch (...) {
        outcome.thrown = std::current_exception();
      }
      boost::asio::post(home, [handler = std::move(handler)]() mutable { std::move(handler)(); });
    });
  };
  co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
      begin, boost::asio::use_awaitable);
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  co_return *std::move(outcome.made);
}

template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work&>> CpuPool::run_sized(std::size_t bytes,
                                                                       Work work) {
  if (bytes <= kInPlace) co_return work();
  co_return co_await run(std::move(work));
}

}  // namespace baton::net
