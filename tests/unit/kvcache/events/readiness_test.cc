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
class Bell final : public Source {
 public:
  explicit Bell(Readiness& readiness) : readiness_(readiness) {
    if (descriptor_ < 0 || !readiness_.add(descriptor_, *this)) throw std::runtime_error("no bell");
  }
  ~Bell() override {
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
  Bell bell(readiness);
  readiness.run_once();
  EXPECT_EQ(bell.worked, 1);
  readiness.wake();
  readiness.run_once();
  EXPECT_EQ(bell.worked, 1);
}

TEST(Readiness, OnlyWhoseDescriptorIsReadableWorks) {
  Readiness readiness;
  Bell rung(readiness);
  Bell quiet(readiness);
  readiness.run_once();
  rung.ring();
  readiness.run_once();
  EXPECT_EQ(rung.worked, 2);
  EXPECT_EQ(quiet.worked, 1);
}

TEST(Readiness, WhoHasMoreToDoGoesOnWithoutFurtherNotice) {
  Readiness readiness;
  Bell busy(readiness);
  Bell calm(readiness);
  busy.wanted = 3;
  for (int i = 0; i < 3; ++i) readiness.run_once();
  EXPECT_EQ(busy.worked, 3);
  EXPECT_EQ(calm.worked, 1);
}

// So that commands to a thread of thousands of busy feeds are heard soon.
TEST(Readiness, WhereManyAreReadyTheyTakeTurns) {
  Readiness readiness;
  std::deque<Bell> bells;
  for (int i = 0; i < 100; ++i) bells.emplace_back(readiness).wanted = 1'000;
  const auto worked = [&] {
    int all = 0;
    for (const Bell& bell : bells) all += bell.worked;
    return all;
  };
  readiness.run_once();
  EXPECT_LT(worked(), 50);
  while (worked() < 1'000) readiness.run_once();
  for (const Bell& bell : bells) EXPECT_GE(bell.worked, 9);
}

TEST(Readiness, WhoIsRemovedByAnotherDoesNotWork) {
  Readiness readiness;
  Bell first(readiness);
  std::optional<Bell> second(std::in_place, readiness);
  first.on_work = [&] { second.reset(); };
  readiness.run_once();
  EXPECT_EQ(first.worked, 1);
  EXPECT_FALSE(second.has_value());
}

TEST(Readiness, TimesComeInTheirOrderAndOnce) {
  Readiness readiness;
  Bell soon(readiness);
  Bell later(readiness);
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
  Bell bell(readiness);
  readiness.set_time(bell, std::chrono::steady_clock::now());
  readiness.set_time(bell, std::nullopt);
  readiness.run_once();
  EXPECT_EQ(bell.times, 0);
}

TEST(Readiness, AnotherThreadWakesIt) {
  Readiness readiness;
  std::thread waker([&] { readiness.wake(); });
  readiness.run_once();
  waker.join();
}

}  // namespace
}  // namespace baton::kvcache
