// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/inheritance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace baton::app {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using testing::ElementsAre;
using testing::IsEmpty;

HandedDown read(const std::map<std::string, std::string>& variables) {
  return read_environment(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      100);
}

InheritedSocket socket(const char* name, const char* address, std::uint16_t port) {
  return {.descriptor = 3, .name = name, .bound = {make_address(address), port}};
}

tcp::endpoint at(const char* address, std::uint16_t port) { return {make_address(address), port}; }

TEST(Inheritance, WithoutAnyVariableNothingWasHandedDown) {
  EXPECT_THAT(read({}).names, IsEmpty());
  EXPECT_FALSE(read({}).takeover);
}

TEST(Inheritance, ReadsWhatSystemdSays) {
  const auto given = read({{"LISTEN_PID", "100"},
                           {"LISTEN_FDS", "3"},
                           {"LISTEN_FDNAMES", "listen:admin:baton.socket"}});
  EXPECT_FALSE(given.takeover);
  EXPECT_THAT(given.names, ElementsAre("listen", "admin", "baton.socket"));
  EXPECT_THAT(read({{"LISTEN_PID", "100"}, {"LISTEN_FDS", "2"}}).names, ElementsAre("", ""));
}

TEST(Inheritance, LeavesAloneWhatWasMeantForAnother) {
  EXPECT_THAT(read({{"LISTEN_PID", "99"}, {"LISTEN_FDS", "1"}}).names, IsEmpty());
  EXPECT_THAT(read({{"LISTEN_FDS", "1"}}).names, IsEmpty());
}

TEST(Inheritance, TakesNonsenseForNothing) {
  for (const char* count : {"", "x", "-1", "1x", "99999999999999999999"}) {
    EXPECT_THAT(read({{"LISTEN_PID", "100"}, {"LISTEN_FDS", count}}).names, IsEmpty()) << count;
  }
  EXPECT_THAT(read({{"LISTEN_PID", "100"}, {"LISTEN_FDS", "1"}, {"LISTEN_FDNAMES", "a:b:c"}}).names,
              ElementsAre("a"));
}

TEST(Inheritance, ReadsWhatAnotherBatonSays) {
  const auto given = read({{"BATON_TAKEOVER", "listen:listen:admin:predecessor"},
                           {"LISTEN_PID", "100"},
                           {"LISTEN_FDS", "1"}});
  EXPECT_TRUE(given.takeover);
  EXPECT_THAT(given.names, ElementsAre("listen", "listen", "admin", "predecessor"));
}

TEST(Inheritance, TheAddressDecidesWhichSocketItIs) {
  EXPECT_TRUE(fits(socket("", "127.0.0.1", 8000), "listen", at("127.0.0.1", 8000)));
  EXPECT_TRUE(fits(socket("baton.socket", "::", 8000), "listen", at("::", 8000)));
  EXPECT_FALSE(fits(socket("", "127.0.0.1", 8000), "listen", at("127.0.0.1", 8001)));
  EXPECT_FALSE(fits(socket("listen", "0.0.0.0", 8000), "listen", at("127.0.0.1", 8000)));
  EXPECT_FALSE(fits(socket("listen", "::", 8000), "listen", at("0.0.0.0", 8000)));
}

TEST(Inheritance, TheNameDecidesWhereAnyPortWillDo) {
  EXPECT_TRUE(fits(socket("listen", "127.0.0.1", 40000), "listen", at("127.0.0.1", 0)));
  EXPECT_FALSE(fits(socket("", "127.0.0.1", 40000), "listen", at("127.0.0.1", 0)));
  EXPECT_FALSE(fits(socket("admin", "127.0.0.1", 40000), "listen", at("127.0.0.1", 0)));
  EXPECT_FALSE(fits(socket("listen", "127.0.0.2", 40000), "listen", at("127.0.0.1", 0)));
}

TEST(Inheritance, ASocketWithTheNameOfOneIsNeverTheOther) {
  EXPECT_FALSE(fits(socket("admin", "127.0.0.1", 8000), "listen", at("127.0.0.1", 8000)));
  EXPECT_FALSE(fits(socket("listen", "127.0.0.1", 8000), "admin", at("127.0.0.1", 8000)));
}

TEST(Inheritance, GivesEachSocketToOne) {
  Inheritance inheritance{
      .sockets = {socket("listen", "127.0.0.1", 8000), socket("admin", "127.0.0.1", 9000),
                  socket("listen", "127.0.0.1", 8000), socket("listen", "127.0.0.1", 8001)},
      .unusable = {},
      .predecessor = {}};
  EXPECT_EQ(inheritance.take("listen", at("127.0.0.1", 8000)).size(), 2U);
  EXPECT_THAT(inheritance.take("listen", at("127.0.0.1", 8000)), IsEmpty());
  EXPECT_EQ(inheritance.take("admin", at("127.0.0.1", 9000)).size(), 1U);
  ASSERT_EQ(inheritance.sockets.size(), 1U);
  EXPECT_EQ(inheritance.sockets.front().bound.port(), 8001);
}

}  // namespace
}  // namespace baton::app
