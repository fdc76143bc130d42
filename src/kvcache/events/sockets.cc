// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/sockets.h"

#include "kvcache/events/recipient.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

namespace baton::kvcache {
namespace {

// Ranks of ten thousand workers: each has a subscriber, a monitor with a socket at either end, and
// now and then a replay.
constexpr int kSockets = 65'536;
constexpr int kQueuedBatches = 100'000;                          // as many as engines queue
constexpr std::int64_t kMessageBytes = std::int64_t{64} << 20U;  // of a frame
constexpr int kReconnectMs = 100;
constexpr int kReconnectMostMs = 5'000;
constexpr int kHeartbeatMs = 5'000;
constexpr int kHeartbeatTimeoutMs = 15'000;

constexpr int kLost = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                      ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
// Closed: an attempt to connect has failed; the end of a connection is another event.
constexpr int kWatched = kLost | ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECT_DELAYED |
                         ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;

void set_common(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, 1);
  socket.set(zmq::sockopt::maxmsgsize, kMessageBytes);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
  socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMostMs);
}

Error describe(std::string_view what, const std::string& endpoint, const zmq::error_t& error) {
  return {Errc::EngineUnreachable, fmt::format("{} {}: {}", what, endpoint, error.what())};
}

}  // namespace

zmq::context_t make_context() {
  zmq::context_t context(1);
  context.set(zmq::ctxopt::max_sockets, kSockets);
  return context;
}

Result<zmq::socket_t> make_subscriber(zmq::context_t& context, const std::string& endpoint,
                                      const std::string& monitor) {
  try {
    zmq::socket_t socket(context, zmq::socket_type::sub);
    set_common(socket);
    socket.set(zmq::sockopt::rcvhwm, kQueuedBatches);
    // Detects a connection that ended silently, and reconnects.
    socket.set(zmq::sockopt::heartbeat_ivl, kHeartbeatMs);
    socket.set(zmq::sockopt::heartbeat_timeout, kHeartbeatTimeoutMs);
    socket.set(zmq::sockopt::heartbeat_ttl, kHeartbeatTimeoutMs);
    if (is_bound(endpoint)) {
      socket.bind(endpoint);
      return socket;
    }
    if (zmq_socket_monitor(socket.handle(), monitor.c_str(), kWatched) != 0) throw zmq::error_t();
    socket.connect(endpoint);
    return socket;
  } catch (const zmq::error_t& error) {
    return fail(describe("cannot subscribe at", endpoint, error));
  }
}

Result<zmq::socket_t> make_monitor(zmq::context_t& context, const std::string& monitor) {
  try {
    zmq::socket_t socket(context, zmq::socket_type::pair);
    socket.set(zmq::sockopt::linger, 0);
    // ZeroMQ writes it on the thread that serves all sockets, and waits if there is no room.
    socket.set(zmq::sockopt::rcvhwm, 0);
    socket.connect(monitor);
    return socket;
  } catch (const zmq::error_t& error) {
    return fail(describe("cannot watch the connection", monitor, error));
  }
}

void stop_monitor(zmq::socket_t& subscriber) {
  zmq_socket_monitor(subscriber.handle(), nullptr, 0);
}

Result<zmq::socket_t> make_replay(zmq::context_t& context, const std::string& endpoint,
                                  std::uint64_t from) {
  try {
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    set_common(socket);
    socket.set(zmq::sockopt::rcvhwm, kQueuedBatches);
    socket.connect(endpoint);
    socket.send(zmq::message_t(), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
    const auto request = replay_request(from);
    socket.send(zmq::buffer(request), zmq::send_flags::dontwait);
    return socket;
  } catch (const zmq::error_t& error) {
    return fail(describe("cannot ask for a replay at", endpoint, error));
  }
}

Message::Outcome Message::receive(zmq::socket_t& socket) {
  count_ = 0;
  zmq::message_t surplus;
  for (bool more = true; more;) {
    zmq::message_t& frame = count_ < kMost ? frames_[count_] : surplus;
    int size = 0;
    do size = zmq_msg_recv(frame.handle(), socket.handle(), ZMQ_DONTWAIT);
    while (size < 0 && zmq_errno() == EINTR);
    if (size < 0) return zmq_errno() == EAGAIN ? Outcome::Nothing : Outcome::Failed;
    more = frame.more();
    if (count_ == kMost) continue;
    views_[count_] = {static_cast<const std::byte*>(frame.data()), frame.size()};
    ++count_;
  }
  return Outcome::Received;
}

ConnectionNews read_monitor(zmq::socket_t& monitor) {
  ConnectionNews news;
  Message message;
  while (message.receive(monitor) == Message::Outcome::Received) {
    std::uint16_t event = 0;
    if (message.frames().empty() || message.frames()[0].size() < sizeof(event)) continue;
    std::memcpy(&event, message.frames()[0].data(), sizeof(event));
    news.given_up = (event & kLost) != 0;
    news.lost = news.lost || *news.given_up;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) news.made = true;
    if (event == ZMQ_EVENT_CLOSED) ++news.refused;
  }
  return news;
}

bool subscribe(zmq::socket_t& subscriber, const std::string& topic) {
  return zmq_setsockopt(subscriber.handle(), ZMQ_SUBSCRIBE, topic.data(), topic.size()) == 0;
}

void unsubscribe(zmq::socket_t& subscriber, const std::string& topic) {
  zmq_setsockopt(subscriber.handle(), ZMQ_UNSUBSCRIBE, topic.data(), topic.size());
}

std::string address_of(zmq::socket_t& socket) {
  std::array<char, 1'024> text{};
  std::size_t size = text.size();
  if (zmq_getsockopt(socket.handle(), ZMQ_LAST_ENDPOINT, text.data(), &size) != 0) return {};
  return text.data();
}

int descriptor(zmq::socket_t& socket) {
  int found = -1;
  std::size_t size = sizeof(found);
  return zmq_getsockopt(socket.handle(), ZMQ_FD, &found, &size) == 0 ? found : -1;
}

}  // namespace baton::kvcache
