// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace baton::app {

// Descriptors are handed down from this one on, as systemd does it.
inline constexpr int kFirstHandedDown = 3;
// From one Baton to the next: their names, with colons between. The environment of systemd has a
// process id in it, which nobody knows before the process is there.
inline constexpr const char* kTakeoverVariable = "BATON_TAKEOVER";
inline constexpr std::string_view kChannelName = "predecessor";
inline constexpr std::string_view kClientSocket = "listen";
inline constexpr std::string_view kAdminSocket = "admin";

// What the environment says of descriptors handed down to this process.
struct HandedDown {
  bool takeover = false;           // by another Baton, that is to be followed
  std::vector<std::string> names;  // from kFirstHandedDown on; empty where it has none
};
using Environment = std::function<const char*(const char*)>;
HandedDown read_environment(const Environment& get, pid_t own);

// A listening socket that was there before this process.
struct InheritedSocket {
  int descriptor;
  std::string name;
  boost::asio::ip::tcp::endpoint bound;
};

// Whether the socket is the one for `key` ("listen", "admin") at the address asked for. The address
// decides, so that another one in the configuration counts; the name does where any port will do. A
// socket with the name of one key is never that of the other.
bool fits(const InheritedSocket& socket, std::string_view key,
          const boost::asio::ip::tcp::endpoint& asked);

// What came with the process.
struct Inheritance {
  std::vector<InheritedSocket> sockets;
  std::vector<std::string> unusable;  // names of what was handed down and is no listening socket
  std::optional<int> predecessor;     // a channel to the process that is to be followed

  // Those that fit; they belong to the caller from now on.
  std::vector<InheritedSocket> take(std::string_view key,
                                    const boost::asio::ip::tcp::endpoint& asked);
};
// Once, before there are other threads: takes what it says out of the environment.
Inheritance take_inheritance();

}  // namespace baton::app
