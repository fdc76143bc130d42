// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/line_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <fcntl.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace baton::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct LineChannelTest : testing::Test {
  LineChannelTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    here = std::make_unique<LineChannel>(ends[0]);
    there = std::make_unique<LineChannel>(ends[1]);
  }
  void write(std::string_view bytes) {
    EXPECT_EQ(::send(there->descriptor(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  std::unique_ptr<LineChannel> here;
  std::unique_ptr<LineChannel> there;
};

TEST_F(LineChannelTest, GivesLinesOnceTheyAreWhole) {
  EXPECT_THAT(here->receive(), IsEmpty());
  EXPECT_TRUE(there->send("pid 7"));
  write("checked\nre");
  EXPECT_THAT(here->receive(), ElementsAre("pid 7", "checked"));
  write("ady\n");
  EXPECT_THAT(here->receive(), ElementsAre("ready"));
  EXPECT_FALSE(here->ended());
}

TEST_F(LineChannelTest, GivesTheLastLinesWithTheEnd) {
  EXPECT_TRUE(there->send("ready"));
  there.reset();
  EXPECT_THAT(here->receive(), ElementsAre("ready"));
  EXPECT_TRUE(here->ended());
  EXPECT_FALSE(here->send("go"));
}

TEST_F(LineChannelTest, DoesNotReadALineWithoutEndForEver) {
  write(std::string(16'000, 'x'));
  EXPECT_THAT(here->receive(), IsEmpty());
  EXPECT_TRUE(here->ended());
}

TEST_F(LineChannelTest, TakesLinesHoweverTheyAreCut) {
  const std::string text = "pid 4711\n\nchecked\n ready \nready\n";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at += step) {
      write(text.substr(at, step));
      for (std::string& line : here->receive()) lines.push_back(std::move(line));
    }
    EXPECT_THAT(lines, ElementsAre("pid 4711", "", "checked", " ready ", "ready")) << step;
  }
}

TEST_F(LineChannelTest, ALineIsAnyBytesButItsEnd) {
  write(std::string_view("a\0b\r\xff\n", 6));
  EXPECT_THAT(here->receive(), ElementsAre(std::string("a\0b\r\xff", 5)));
}

TEST_F(LineChannelTest, ALineWithoutItsEndIsNone) {
  write("ready");
  there.reset();
  EXPECT_THAT(here->receive(), IsEmpty());
  EXPECT_TRUE(here->ended());
  EXPECT_THAT(here->receive(), IsEmpty());
}

TEST_F(LineChannelTest, LongLinesAreTakenUpToABound) {
  const std::string longest(4 * 1024 - 1, 'x');
  write(longest + "\n");
  EXPECT_THAT(here->receive(), ElementsAre(longest));
  EXPECT_FALSE(here->ended());
}

TEST_F(LineChannelTest, DoesNotWaitForOneThatDoesNotRead) {
  const std::string line(1000, 'x');
  int sent = 0;
  while (sent < 100'000 && here->send(line)) ++sent;
  EXPECT_GT(sent, 1);
  EXPECT_LT(sent, 100'000);
  EXPECT_FALSE(here->send(line));
}

TEST_F(LineChannelTest, AnEndThatIsGoneEndsNoProcess) {
  there.reset();
  EXPECT_FALSE(here->send("go"));  // and no signal came
  EXPECT_THAT(here->receive(), IsEmpty());
  EXPECT_TRUE(here->ended());
}

TEST_F(LineChannelTest, BothSpeakAtOnce) {
  EXPECT_TRUE(here->send("one"));
  EXPECT_TRUE(there->send("two"));
  EXPECT_THAT(here->receive(), ElementsAre("two"));
  EXPECT_THAT(there->receive(), ElementsAre("one"));
}

TEST_F(LineChannelTest, ClosesItsDescriptor) {
  const int descriptor = here->descriptor();
  here.reset();
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

}  // namespace
}  // namespace baton::app
