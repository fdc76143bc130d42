// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/logging.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

// Standard error goes into a pipe as long as this lives.
class CapturedErrors {
 public:
  CapturedErrors() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    ::dup2(ends_[1], STDERR_FILENO);
    ::close(ends_[1]);
  }
  ~CapturedErrors() {
    if (before_ >= 0) give_back();
    ::close(ends_[0]);
  }
  std::string give_back() {
    ::dup2(before_, STDERR_FILENO);
    ::close(std::exchange(before_, -1));
    std::string text;
    std::array<char, 512> buffer{};
    for (ssize_t size = 1; size > 0;) {
      size = ::read(ends_[0], buffer.data(), buffer.size());
      if (size > 0) text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return text;
  }

 private:
  int before_;
  std::array<int, 2> ends_{};
};

std::string logged_with(const config::Log& options) {
  CapturedErrors errors;
  {
    telemetry::Logger log = make_logger(options);
    log.debug("one");
    log.info("two");
    log.warning("three");
    log.error("four");
  }  // its end writes what is left
  return errors.give_back();
}

TEST(Logging, WritesToStandardErrorFromTheLevelAskedFor) {
  using config::LogLevel;
  const std::array<std::string, 4> events{"one", "two", "three", "four"};
  const std::array levels{LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error};
  for (std::size_t least = 0; least < levels.size(); ++least) {
    const std::string text =
        logged_with({.format = config::LogFormat::Human, .level = levels[least]});
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(text.find(events[i]) != text.npos, i >= least) << text;
    }
  }
}

TEST(Logging, WritesJsonWhereThatIsAskedFor) {
  const std::string json =
      logged_with({.format = config::LogFormat::Json, .level = config::LogLevel::Error});
  EXPECT_TRUE(json.starts_with("{")) << json;
  EXPECT_NE(json.find("\"event\":\"four\""), json.npos);
  const std::string human =
      logged_with({.format = config::LogFormat::Human, .level = config::LogLevel::Error});
  EXPECT_FALSE(human.starts_with("{")) << human;
}

}  // namespace
}  // namespace baton::app
