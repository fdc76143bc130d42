// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/inheritance.h"

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

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

// A listening socket on a port of its own.
class Listening {
 public:
  explicit Listening(const char* address = "127.0.0.1", bool listens = true)
      : acceptor_(io_, tcp::v4()) {
    acceptor_.bind({make_address(address), 0});
    if (listens) acceptor_.listen();
  }
  int descriptor() { return acceptor_.native_handle(); }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  boost::asio::io_context io_;
  tcp::acceptor acceptor_;
};

// What a process finds that was started with these descriptors, from 3 on, and variables; `%` stands
// for its own id. It is a process of its own, because the descriptors of this one are in use.
std::string found_by_child(const std::vector<int>& descriptors,
                           const std::vector<std::pair<std::string, std::string>>& variables) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::fcntl(ends[1], F_DUPFD, 300);
    std::vector<int> copies;
    for (const int one : descriptors) copies.push_back(::fcntl(one, F_DUPFD, 400));
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const int place = kFirstHandedDown + static_cast<int>(i);
      if (copies[i] < 0) {
        ::close(place);
      } else {
        ::dup2(copies[i], place);
      }
    }
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), (value == "%" ? std::to_string(::getpid()) : value).c_str(), 1);
    }
    const Inheritance found = take_inheritance();
    std::string text;
    for (const InheritedSocket& one : found.sockets) {
      text += one.name + "@" + std::to_string(one.descriptor) + "=" +
              one.bound.address().to_string() + ":" + std::to_string(one.bound.port());
      text += (::fcntl(one.descriptor, F_GETFD) & FD_CLOEXEC) != 0 ? " " : " inheritable ";
    }
    for (const std::string& name : found.unusable) text += "unusable:" + name + " ";
    if (found.predecessor) text += "predecessor@" + std::to_string(*found.predecessor) + " ";
    for (const char* name : {"BATON_TAKEOVER", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
      if (::getenv(name) != nullptr) text += std::string("kept:") + name + " ";
    }
    const auto written = ::write(out, text.data(), text.size());
    ::_exit(std::cmp_equal(written, text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 512> buffer{};
  for (ssize_t size = 1; size > 0;) {
    size = ::read(ends[0], buffer.data(), buffer.size());
    if (size > 0) text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return text;
}

TEST(TakeInheritance, FindsTheSocketsOfSystemd) {
  Listening first;
  Listening second("127.0.0.2");
  EXPECT_EQ(
      found_by_child(
          {first.descriptor(), second.descriptor()},
          {{"LISTEN_PID", "%"}, {"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "listen:baton.socket"}}),
      "listen@3=127.0.0.1:" + std::to_string(first.port()) +
          " baton.socket@4=127.0.0.2:" + std::to_string(second.port()) + " ");
}

TEST(TakeInheritance, FindsThePredecessorOnlyInATakeover) {
  Listening one;
  std::array<int, 2> channel{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, channel.data()), 0);
  const std::string port = std::to_string(one.port());
  EXPECT_EQ(
      found_by_child({one.descriptor(), channel[0]}, {{"BATON_TAKEOVER", "admin:predecessor"}}),
      "admin@3=127.0.0.1:" + port + " predecessor@4 ");
  // Under systemd a channel is no listening socket, whatever it is called.
  EXPECT_EQ(found_by_child(
                {channel[0], one.descriptor()},
                {{"LISTEN_PID", "%"}, {"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "predecessor:a"}}),
            "a@4=127.0.0.1:" + port + " unusable:predecessor ");
  for (const int end : channel) ::close(end);
}

TEST(TakeInheritance, LeavesOutWhatIsNoListeningTcpSocket) {
  Listening good;
  Listening deaf("127.0.0.1", false);
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(::pipe(pipe_ends.data()), 0);
  const int datagrams = ::socket(AF_INET, SOCK_DGRAM, 0);
  const int local = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const int file = ::open("/dev/null", O_RDONLY);
  EXPECT_EQ(found_by_child(
                {deaf.descriptor(), pipe_ends[0], datagrams, local, file, -1, good.descriptor()},
                {{"BATON_TAKEOVER", "deaf:pipe:udp:unix:file:closed:good"}}),
            "good@9=127.0.0.1:" + std::to_string(good.port()) +
                " unusable:deaf unusable:pipe unusable:udp unusable:unix unusable:file "
                "unusable:closed ");
  for (const int one : {pipe_ends[0], pipe_ends[1], datagrams, local, file}) ::close(one);
}

TEST(TakeInheritance, OfAnotherProcessLeavesNothingBehind) {
  Listening one;
  EXPECT_EQ(found_by_child({one.descriptor()}, {{"LISTEN_PID", "1"}, {"LISTEN_FDS", "1"}}), "");
  EXPECT_EQ(found_by_child({one.descriptor()}, {{"LISTEN_PID", "%"}, {"LISTEN_FDS", "none"}}), "");
  EXPECT_EQ(found_by_child({}, {}), "");
}

TEST(Inheritance, NamesMayBeEmptyAndMayRepeat) {
  EXPECT_THAT(read({{"BATON_TAKEOVER", ""}}).names, ElementsAre(""));
  EXPECT_THAT(read({{"BATON_TAKEOVER", ":a::a:"}}).names, ElementsAre("", "a", "", "a", ""));
  EXPECT_TRUE(read({{"BATON_TAKEOVER", ""}}).takeover);
}

TEST(Inheritance, NobodyHandsDownMoreThanAFewThousand) {
  EXPECT_EQ(read({{"LISTEN_PID", "100"}, {"LISTEN_FDS", "1000000"}}).names.size(), 4096U);
  EXPECT_EQ(read({{"LISTEN_PID", "100"}, {"LISTEN_FDS", "0"}}).names.size(), 0U);
}

TEST(Inheritance, TakesNothingForAnAddressThatNobodyHas) {
  Inheritance inheritance{
      .sockets = {socket("listen", "127.0.0.1", 8000)}, .unusable = {}, .predecessor = {}};
  EXPECT_THAT(inheritance.take("listen", at("127.0.0.1", 8001)), IsEmpty());
  EXPECT_THAT(inheritance.take("admin", at("127.0.0.1", 8000)), IsEmpty());
  EXPECT_EQ(inheritance.sockets.size(), 1U);
  EXPECT_EQ(inheritance.take("listen", at("127.0.0.1", 0)).size(), 1U);
  EXPECT_THAT(inheritance.sockets, IsEmpty());
}

}  // namespace
}  // namespace baton::app
