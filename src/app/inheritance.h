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
// Passes the descriptors' names, with colons between, from one Baton to the next. systemd's own
// variables contain a process id, which is unknown before the process exists.
inline constexpr const char* kTakeoverVariable = "BATON_TAKEOVER";
inline constexpr std::string_view kChannelName = "predecessor";
inline constexpr std::string_view kClientSocket = "listen";
inline constexpr std::string_view kAdminSocket = "admin";

// Descriptors handed down to this process, as its environment describes them.
struct HandedDown {
  bool takeover = false;           // by another Baton that this process replaces
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

// Sockets and channels that this process inherited.
struct Inheritance {
  std::vector<InheritedSocket> sockets;
  std::vector<std::string> unusable;  // names of descriptors that are no listening sockets
  std::optional<int> predecessor;     // a channel to the process that this one replaces

  // Those that fit; they belong to the caller from now on.
  std::vector<InheritedSocket> take(std::string_view key,
                                    const boost::asio::ip::tcp::endpoint& asked);
};
// Call once, before there are other threads: it removes the variables it reads from the
// environment.
Inheritance take_inheritance();

}  // namespace baton::app
