// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/line_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <sys/socket.h>

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

}  // namespace
}  // namespace baton::app
