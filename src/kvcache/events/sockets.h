// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvcache/events/framing.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <zmq.hpp>

namespace baton::kvcache {

// ZeroMQ sockets as feeds need them: closed without lingering, kept alive, of bounded memory, and
// never blocking.

// A context with room for thousands of sockets.
zmq::context_t make_context();

// Subscribed to nothing yet. Connects, or binds if the host is a wildcard. The router drops
// nothing: when the queue is full the connection is read no further, and the publisher's own queue
// decides.
Result<zmq::socket_t> make_subscriber(zmq::context_t& context, const std::string& endpoint,
                                      const std::string& monitor);
// Monitors the connections of the subscriber that was given the same name for it.
Result<zmq::socket_t> make_monitor(zmq::context_t& context, const std::string& monitor);
// Before either is closed: a subscriber goes on closing in ZeroMQ's threads, and if it had an event
// to report without a listener, these would wait for ever.
void stop_monitor(zmq::socket_t& subscriber);
// Asks a replay socket for everything from that number on.
Result<zmq::socket_t> make_replay(zmq::context_t& context, const std::string& endpoint,
                                  std::uint64_t from);

// Role. One message of several frames, received without waiting.
// Invariants. Frames beyond the most are read and thrown away; that there were more is seen in
//   their number.
class Message {
 public:
  enum class Outcome : std::uint8_t { Received, Nothing, Failed };
  Outcome receive(zmq::socket_t& socket);
  std::span<const Bytes> frames() const { return {views_.data(), count_}; }

 private:
  static constexpr std::size_t kMost = 6;  // more than any framing has
  std::array<zmq::message_t, kMost> frames_;
  std::array<Bytes, kMost> views_;
  std::size_t count_ = 0;
};

// The monitor's events since it was last read. After some failures of the protocol, such as a
// message that is too large, ZeroMQ gives a connection up for good without an event: then it was
// lost, and is not being made again.
struct ConnectionNews {
  bool lost = false;
  bool made = false;
  std::size_t refused = 0;       // attempts to connect
  std::optional<bool> given_up;  // as far as known; nothing: no news
};
ConnectionNews read_monitor(zmq::socket_t& monitor);

// None of these throws: a refusal by ZeroMQ ends neither the loop nor the feeds of others.
bool subscribe(zmq::socket_t& subscriber, const std::string& topic);
void unsubscribe(zmq::socket_t& subscriber, const std::string& topic);
// The address it is bound or connected to; empty if unknown.
std::string address_of(zmq::socket_t& socket);
// -1: it has none.
int descriptor(zmq::socket_t& socket);

}  // namespace baton::kvcache
