// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/log_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace baton::telemetry {
namespace {

using testing::ElementsAre;

constexpr std::chrono::seconds kLong{60};
constexpr std::size_t kCapacity = 20'000;  // bytes, of which a pipe of one page takes a part

// A pipe of one page. Reads only when it is told to.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    out_ = ends[0];
    in_ = ends[1];
    ::fcntl(in_, F_SETPIPE_SZ, 4096);
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int in() const { return in_; }
  void close_reader() { close_once(out_); }
  void close_writer() { close_once(in_); }

  // Blocks for the next line; nothing at the end.
  std::optional<std::string> line() {
    for (;;) {
      if (const auto end = text_.find('\n'); end != std::string::npos) {
        std::string found = text_.substr(0, end);
        text_.erase(0, end + 1);
        return found;
      }
      std::array<char, 1024> some{};
      const ssize_t read = ::read(out_, some.data(), some.size());
      if (read <= 0) return std::nullopt;
      text_.append(some.data(), static_cast<std::size_t>(read));
    }
  }

  std::vector<std::string> rest() {
    std::vector<std::string> lines;
    while (auto next = line()) lines.push_back(*next);
    return lines;
  }

 private:
  static void close_once(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }

  int out_ = -1;
  int in_ = -1;
  std::string text_;
};

class LogQueueTest : public testing::Test {
 protected:
  std::unique_ptr<LogQueue> make(std::size_t capacity,
                                 std::chrono::milliseconds last_words = kLong) {
    return std::make_unique<LogQueue>(
        LogQueue::Options{.descriptor = pipe_.in(), .capacity = capacity, .last_words = last_words},
        [](std::uint64_t lines) { return "dropped " + std::to_string(lines) + "\n"; }, dropped_);
  }

  // Until one does not fit. The queue holds more than the pipe: the writer is held up then.
  int fill(LogQueue& queue) {
    int pushed = 0;
    while (dropped_->value() == 0) queue.push("line " + std::to_string(pushed++) + "\n");
    return pushed;
  }

  Pipe pipe_;
  std::shared_ptr<Counter> dropped_ = std::make_shared<Counter>();
};

TEST_F(LogQueueTest, WritesAllInOrderBeforeItEnds) {
  auto queue = make(kCapacity);
  queue->push("one\n");
  queue->push("two\n");
  queue.reset();
  pipe_.close_writer();
  EXPECT_THAT(pipe_.rest(), ElementsAre("one", "two"));
  EXPECT_EQ(dropped_->value(), 0u);
}

TEST_F(LogQueueTest, FlushWaitsUntilAllIsWritten) {
  auto queue = make(kCapacity);
  queue->push("one\n");
  queue->flush();
  pipe_.close_writer();  // what is not in the pipe by now will never be
  EXPECT_THAT(pipe_.rest(), ElementsAre("one"));
}

TEST_F(LogQueueTest, NobodyWaitsForAReaderThatStallsAndItLearnsWhatItMissed) {
  auto queue = make(kCapacity);
  const int pushed = fill(*queue);
  int next = 0;
  // Those that fit, then the notice, then those that come later.
  for (; next < pushed - 1; ++next) EXPECT_EQ(pipe_.line(), "line " + std::to_string(next));
  EXPECT_EQ(pipe_.line(), "dropped 1");
  queue->push("later\n");
  EXPECT_EQ(pipe_.line(), "later");
  EXPECT_EQ(dropped_->value(), 1u);
}

TEST_F(LogQueueTest, EveryDroppedLineIsToldOfOnce) {
  auto queue = make(kCapacity);
  std::uint64_t pushed = 0;
  for (; pushed < 5000; ++pushed) queue->push("a line of some length\n");
  std::jthread reader([&] {
    std::uint64_t read = 0;
    std::uint64_t told = 0;
    while (auto line = pipe_.line()) {
      if (line->starts_with("dropped ")) {
        told += std::stoull(line->substr(8));
      } else {
        ++read;
      }
    }
    EXPECT_EQ(read + told, 5000u);
    EXPECT_EQ(told, dropped_->value());
    EXPECT_GT(told, 0u);
  });
  queue.reset();
  pipe_.close_writer();
}

TEST_F(LogQueueTest, ItsEndDoesNotWaitForAReaderThatStalls) {
  auto queue = make(kCapacity, std::chrono::milliseconds(20));
  fill(*queue);
  queue->flush();
  queue.reset();
  // The writer that was left behind ends by itself once somebody reads.
  while (pipe_.line() != "dropped 1") {
  }
}

TEST_F(LogQueueTest, LinesLongerThanAPipeTakesAtOnceAreWrittenWhole) {
  auto queue = make(100'000);
  const std::string lengthy(20'000, 'x');
  queue->push("before\n");
  queue->push(lengthy + "\n");
  queue->push("after\n");
  EXPECT_EQ(pipe_.line(), "before");
  EXPECT_EQ(pipe_.line(), lengthy);
  EXPECT_EQ(pipe_.line(), "after");
}

TEST_F(LogQueueTest, WaitsWhereOthersMadeTheDescriptorNonBlocking) {
  ::fcntl(pipe_.in(), F_SETFL, O_NONBLOCK);
  auto queue = make(kCapacity);
  const int pushed = fill(*queue);
  for (int next = 0; next < pushed - 1; ++next) {
    EXPECT_EQ(pipe_.line(), "line " + std::to_string(next));
  }
  EXPECT_EQ(pipe_.line(), "dropped 1");
}

TEST_F(LogQueueTest, WhatCannotBeWrittenIsCounted) {
  std::signal(SIGPIPE, SIG_IGN);
  auto queue = make(kCapacity);
  pipe_.close_reader();
  queue->push("one\n");
  queue->flush();
  EXPECT_EQ(dropped_->value(), 1u);
  queue->push("two\n");
  queue.reset();
  EXPECT_EQ(dropped_->value(), 2u);
}

}  // namespace
}  // namespace baton::telemetry
