// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// A worker for the proxy benchmark: speaks as much of vLLM's HTTP as a proxy sees, at a cost small
// enough that it can share a core with the load generator. What to answer, and how fast, is in the
// request (traffic.h). Every event is one HTTP chunk and one write, as with a real engine.
// With `--all-loopback 1` it answers at every address of 127.0.0.0/8, as many workers as one likes.

#include "proxy/options.h"
#include "proxy/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::bench {
namespace {

constexpr std::size_t kMaxRequestBytes = 1 << 20;
constexpr std::size_t kMaxUnsentBytes = 1 << 20;

struct Connection {
  int fd = -1;
  std::uint64_t number = 0;  // never used twice, unlike fd
  std::string received;
  std::string unsent;  // what the socket did not take yet
  std::optional<Request> stream;
  std::uint32_t next_event = 0;
};

struct Due {
  std::uint64_t at_ns;
  std::uint64_t connection;
  bool operator>(const Due& other) const { return at_ns > other.at_ns; }
};

// Role. Accepts, answers and streams, on one thread.
// Lifetime. Until the process is ended by a signal.
// Invariants. A streaming connection has exactly one entry in due_; entries of closed connections
//   are dropped when they come up.
class Backend {
 public:
  enum class Addresses { One, AllLoopback };
  Backend(Leg leg, Addresses addresses, const std::string& ready_file);
  [[noreturn]] void run();

 private:
  void accept_all();
  void on_readable(Connection& connection);
  bool take_request(Connection& connection);
  void answer(Connection& connection, std::string_view head, std::string_view body);
  void answer_json(Connection& connection, std::string_view status, std::string_view json);
  void start_stream(Connection& connection, Request request);
  void send_due_events(std::uint64_t now_ns);
  void send_event(Connection& connection);
  void send(Connection& connection, std::string_view bytes);
  void flush(Connection& connection);
  void close_connection(Connection& connection);

  const Leg leg_;  // the only one this worker does
  int epoll_ = -1;
  int listener_ = -1;
  std::uint64_t connections_made_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::string scratch_;
};

// Wraps what was appended to `out` since `start` into an HTTP chunk.
void frame_chunk(std::string& out, std::size_t start) {
  out.insert(start, fmt::format("{:x}\r\n", out.size() - start));
  out += "\r\n";
}

// Zero where the head has none; every client of this program sends one with a body.
std::size_t content_length(std::string_view head) {
  constexpr std::string_view kName = "\r\ncontent-length:";
  for (auto line = head.find("\r\n"); line != std::string_view::npos;
       line = head.find("\r\n", line + 2)) {
    const std::string_view rest = head.substr(line);
    if (rest.size() > kName.size() && strncasecmp(rest.data(), kName.data(), kName.size()) == 0) {
      return std::strtoull(rest.data() + kName.size(), nullptr, 10);
    }
  }
  return 0;
}

Backend::Backend(Leg leg, Addresses addresses, const std::string& ready_file) : leg_(leg) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (addresses == Addresses::AllLoopback) {
    // Any address, but of this device only: nobody from outside gets in.
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (setsockopt(listener_, SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof("lo")) != 0)
      die("cannot listen on loopback alone", errno);
  }
  socklen_t length = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, SOMAXCONN) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    die("cannot listen", errno);
  }
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);

  // Renamed into place, so that a reader never finds half a line.
  const std::string unfinished = ready_file + ".new";
  std::FILE* file = std::fopen(unfinished.c_str(), "w");
  if (file == nullptr) die(unfinished, errno);
  fmt::print(file, "127.0.0.1:{}\n", ntohs(address.sin_port));
  std::fclose(file);
  if (std::rename(unfinished.c_str(), ready_file.c_str()) != 0) die(ready_file, errno);
}

void Backend::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    const std::uint64_t now_ns = monotonic_ns();
    timespec wait{.tv_sec = 3600, .tv_nsec = 0};
    if (!due_.empty()) {
      const std::uint64_t left_ns = due_.top().at_ns > now_ns ? due_.top().at_ns - now_ns : 0;
      wait = {.tv_sec = static_cast<time_t>(left_ns / 1'000'000'000),
              .tv_nsec = static_cast<long>(left_ns % 1'000'000'000)};
    }
    const int count = epoll_pwait2(epoll_, events.data(), events.size(), &wait, nullptr);
    if (count < 0 && errno != EINTR) die("epoll_pwait2", errno);
    for (const epoll_event& event :
         std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
      const std::uint64_t number = event.data.u64;  // a copy: epoll_event is packed
      if (number == 0) {
        accept_all();
        continue;
      }
      // An earlier event of this batch may have closed it.
      const auto found = connections_.find(number);
      if (found == connections_.end()) continue;
      Connection& connection = *found->second;
      if ((event.events & EPOLLOUT) != 0) flush(connection);
      const bool readable = (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
      if (readable && connection.fd >= 0) on_readable(connection);
      if (connection.fd < 0) connections_.erase(found);
    }
    send_due_events(monotonic_ns());
  }
}

void Backend::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno != EAGAIN && errno != ECONNABORTED) die("accept", errno);
      return;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    auto connection = std::make_unique<Connection>();
    connection->fd = fd;
    connection->number = ++connections_made_;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = connection->number}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    connections_.emplace(connection->number, std::move(connection));
  }
}

void Backend::on_readable(Connection& connection) {
  std::array<char, 16384> buffer;
  const ssize_t count = recv(connection.fd, buffer.data(), buffer.size(), 0);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) {
    close_connection(connection);
    return;
  }
  connection.received.append(buffer.data(), static_cast<std::size_t>(count));
  while (connection.fd >= 0 && !connection.stream && take_request(connection)) {
  }
  if (connection.received.size() > kMaxRequestBytes) close_connection(connection);
}

// Answers the first request in `received` if it is there whole.
bool Backend::take_request(Connection& connection) {
  const auto head_end = connection.received.find("\r\n\r\n");
  if (head_end == std::string::npos) return false;
  const std::string_view received = connection.received;
  const std::string_view head = received.substr(0, head_end + 2);
  const std::size_t body_start = head_end + 4;
  const std::size_t body_length = content_length(head);
  if (received.size() - body_start < body_length) return false;
  answer(connection, head, received.substr(body_start, body_length));
  connection.received.erase(0, body_start + body_length);
  return true;
}

void Backend::answer(Connection& connection, std::string_view head, std::string_view body) {
  if (head.starts_with("GET /health ")) {
    answer_json(connection, "200 OK", "");
  } else if (head.starts_with("GET /v1/models ")) {
    answer_json(connection, "200 OK",
                R"({"object":"list","data":[{"id":"bench","object":"model","created":1700000000,)"
                R"("owned_by":"vllm","root":"bench","parent":null,"max_model_len":131072}]})");
  } else if (head.starts_with("POST /v1/chat/completions ")) {
    std::optional<Request> request = parse_body(body);
    if (!request || request->leg != leg_) {
      answer_json(connection, "400 Bad Request",
                  R"({"error":{"message":"not a request of the benchmark, or not for this worker",)"
                  R"("type":"Bad Request","param":null,"code":400}})");
    } else if (request->stream) {
      start_stream(connection, std::move(*request));
    } else {
      std::string json;
      if (leg_ == Leg::Prefill) {
        append_prefill_answer(json, request->id);
      } else {
        append_answer(json, request->id);
      }
      answer_json(connection, "200 OK", json);
    }
  } else {
    answer_json(connection, "404 Not Found", R"({"detail":"Not Found"})");
  }
}

void Backend::answer_json(Connection& connection, std::string_view status, std::string_view json) {
  send(connection, fmt::format("HTTP/1.1 {}\r\nserver: uvicorn\r\ncontent-length: {}\r\n"
                               "content-type: application/json\r\n\r\n{}",
                               status, json.size(), json));
}

void Backend::start_stream(Connection& connection, Request request) {
  scratch_ =
      "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
      "transfer-encoding: chunked\r\n\r\n";
  const std::size_t start = scratch_.size();
  append_role_event(scratch_, request.id);
  frame_chunk(scratch_, start);
  due_.push({monotonic_ns() + request.interval_us * 1000, connection.number});
  connection.next_event = 0;
  connection.stream = std::move(request);
  send(connection, scratch_);
}

void Backend::send_due_events(std::uint64_t now_ns) {
  // Bounded, so that reading goes on also when more is asked than this core can give.
  for (int i = 0; i < 256 && !due_.empty() && due_.top().at_ns <= now_ns; ++i) {
    const Due due = due_.top();
    due_.pop();
    const auto found = connections_.find(due.connection);
    if (found == connections_.end()) continue;
    Connection& connection = *found->second;
    const std::uint64_t interval_ns = connection.stream->interval_us * 1000;
    send_event(connection);
    if (connection.fd < 0) {
      connections_.erase(found);
    } else if (connection.stream) {
      due_.push({due.at_ns + interval_ns, due.connection});
    }
  }
}

// The end of a stream goes out together with its last event.
void Backend::send_event(Connection& connection) {
  const Request& request = *connection.stream;
  const bool last = connection.next_event + 1 >= request.events;
  scratch_.clear();
  append_content_event(scratch_, request.id, connection.next_event, monotonic_ns(),
                       last ? Last::Yes : Last::No);
  frame_chunk(scratch_, 0);
  ++connection.next_event;
  if (last) {
    const std::size_t start = scratch_.size();
    scratch_ += kDoneEvent;
    frame_chunk(scratch_, start);
    scratch_ += "0\r\n\r\n";
    connection.stream.reset();
  }
  send(connection, scratch_);
}

void Backend::send(Connection& connection, std::string_view bytes) {
  if (connection.unsent.empty()) {
    const ssize_t sent = ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      close_connection(connection);
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    if (bytes.empty()) return;
    epoll_event event{.events = EPOLLIN | EPOLLOUT, .data = {.u64 = connection.number}};
    epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
  }
  connection.unsent += bytes;
  if (connection.unsent.size() > kMaxUnsentBytes) close_connection(connection);
}

void Backend::flush(Connection& connection) {
  const ssize_t sent =
      ::send(connection.fd, connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno != EAGAIN) close_connection(connection);
    return;
  }
  connection.unsent.erase(0, static_cast<std::size_t>(sent));
  if (!connection.unsent.empty()) return;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = connection.number}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
}

// The caller up the stack erases it; others may still hold a reference now.
void Backend::close_connection(Connection& connection) {
  close(connection.fd);
  connection.fd = -1;
}

Leg leg_from(const std::string& role) {
  if (role == "aggregated") return Leg::Whole;
  if (role == "prefill") return Leg::Prefill;
  if (role == "decode") return Leg::Decode;
  die(fmt::format("--role is aggregated, prefill or decode, not '{}'", role));
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  using baton::bench::Backend;
  const baton::bench::Options options(argc, argv);
  baton::bench::raise_open_file_limit();
  const auto addresses = options.number_or("all-loopback", 0) == 0
                             ? Backend::Addresses::One
                             : Backend::Addresses::AllLoopback;
  Backend(baton::bench::leg_from(options.text("role")), addresses, options.text("ready-file"))
      .run();
}
