// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/readiness.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

namespace baton::kvcache {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;

// Readable after ring(), like the descriptor of a socket.
class CountingSource final : public Source {
 public:
  explicit CountingSource(Readiness& readiness) : readiness_(readiness) {
    if (descriptor_ < 0 || !readiness_.add(descriptor_, *this))
      throw std::runtime_error("no source");
  }
  ~CountingSource() override {
    readiness_.remove(descriptor_, *this);
    readiness_.set_time(*this, std::nullopt);
    close(descriptor_);
  }
  void ring() { eventfd_write(descriptor_, 1); }

  bool work() override {
    eventfd_t value = 0;
    eventfd_read(descriptor_, &value);
    ++worked;
    if (on_work) on_work();
    return worked < wanted;
  }
  void on_time() override { ++times; }

  int worked = 0;
  int wanted = 0;  // says that there is more until it has worked so often
  int times = 0;
  std::function<void()> on_work;

 private:
  Readiness& readiness_;
  int descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
};

TEST(Readiness, AnAddedSourceIsReadyOnce) {
  Readiness readiness;
  CountingSource source(readiness);
  readiness.run_once();
  EXPECT_EQ(source.worked, 1);
  readiness.wake();
  readiness.run_once();
  EXPECT_EQ(source.worked, 1);
}

TEST(Readiness, OnlyWhoseDescriptorIsReadableWorks) {
  Readiness readiness;
  CountingSource rung(readiness);
  CountingSource quiet(readiness);
  readiness.run_once();
  rung.ring();
  readiness.run_once();
  EXPECT_EQ(rung.worked, 2);
  EXPECT_EQ(quiet.worked, 1);
}

TEST(Readiness, WhoHasMoreToDoGoesOnWithoutFurtherNotice) {
  Readiness readiness;
  CountingSource busy(readiness);
  CountingSource calm(readiness);
  busy.wanted = 3;
  for (int i = 0; i < 3; ++i) readiness.run_once();
  EXPECT_EQ(busy.worked, 3);
  EXPECT_EQ(calm.worked, 1);
}

// So that commands to a thread of thousands of busy feeds are heard soon.
TEST(Readiness, WhereManyAreReadyTheyTakeTurns) {
  Readiness readiness;
  std::deque<CountingSource> sources;
  for (int i = 0; i < 100; ++i) sources.emplace_back(readiness).wanted = 1'000;
  const auto worked = [&] {
    int all = 0;
    for (const CountingSource& source : sources) all += source.worked;
    return all;
  };
  readiness.run_once();
  EXPECT_LT(worked(), 50);
  while (worked() < 1'000) readiness.run_once();
  for (const CountingSource& source : sources) EXPECT_GE(source.worked, 9);
}

TEST(Readiness, WhoIsRemovedByAnotherDoesNotWork) {
  Readiness readiness;
  CountingSource first(readiness);
  std::optional<CountingSource> second(std::in_place, readiness);
  first.on_work = [&] { second.reset(); };
  readiness.run_once();
  EXPECT_EQ(first.worked, 1);
  EXPECT_FALSE(second.has_value());
}

TEST(Readiness, TimesComeInTheirOrderAndOnce) {
  Readiness readiness;
  CountingSource soon(readiness);
  CountingSource later(readiness);
  readiness.run_once();
  const auto now = std::chrono::steady_clock::now();
  readiness.set_time(later, now + 1h);
  readiness.set_time(soon, now + 1h);
  readiness.set_time(soon, now + 1ms);
  readiness.run_once();
  EXPECT_EQ(soon.times, 1);
  EXPECT_EQ(later.times, 0);
  EXPECT_GE(std::chrono::steady_clock::now(), now + 1ms);
}

TEST(Readiness, ATimeCanBeTakenBack) {
  Readiness readiness;
  CountingSource source(readiness);
  readiness.set_time(source, std::chrono::steady_clock::now());
  readiness.set_time(source, std::nullopt);
  readiness.run_once();
  EXPECT_EQ(source.times, 0);
}

TEST(Readiness, AnotherThreadWakesIt) {
  Readiness readiness;
  std::thread waker([&] { readiness.wake(); });
  readiness.run_once();
  waker.join();
}

}  // namespace
}  // namespace baton::kvcache
