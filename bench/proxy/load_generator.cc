// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Load for the proxy benchmark: keeps a number of requests under way through one proxy, checks
// every byte of the answers, and reads the proxy's CPU time or memory at the right moments. Prints
// one JSON object. Options in bench/proxy/run.

#include "proxy/answer_check.h"
#include "proxy/options.h"
#include "proxy/process_usage.h"
#include "proxy/response_reader.h"
#include "proxy/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace baton::bench {
namespace {

constexpr std::uint64_t kMsNs = 1'000'000;
// Odd on purpose: with a round number many streams would begin, and then send, at the same
// instants.
constexpr std::uint64_t kConnectionsPerSecond = 2437;

enum class Mode {
  Stream,  // streams, one after the other on each connection; CPU and event ages over a window
  Answer,  // short answers, one after the other on each connection; CPU over a window
  Hold,    // one stream per connection; memory while all are open
};

struct Plan {
  Mode mode = Mode::Stream;
  std::uint16_t port = 0;
  int pid = 0;  // of the proxy; 0: none to watch
  std::uint32_t connections = 0;
  std::uint32_t events = 0;
  std::uint64_t interval_us = 0;
  std::uint64_t warmup_ns = 0;  // Hold: from all streams open to reading the memory
  std::uint64_t window_ns = 0;
  std::size_t body_bytes = 0;
};

struct Connection {
  int fd = -1;
  std::uint32_t requests = 0;
  std::optional<ResponseReader> reader;  // while an answer is under way
  std::optional<AnswerCheck> check;
  std::string body;
  bool counted_open = false;
};

// What is true at one moment, to be subtracted from another.
struct Sample {
  std::uint64_t at_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t events = 0;
  std::uint64_t answers = 0;
};

// Role. Opens the connections at a steady rate, keeps requests going until the measuring is over.
// Invariants. A connection that saw an error is closed and stays so; each is counted once.
class LoadGenerator {
 public:
  explicit LoadGenerator(const Plan& plan);
  void run();
  void print_result();

 private:
  std::uint64_t opens_at_ns(std::uint32_t index) const;
  std::uint64_t wait_ns(std::uint64_t now_ns) const;
  void open_due_connections(std::uint64_t now_ns);
  void open(std::uint32_t index);
  void start_request(std::uint32_t index);
  void on_readable(std::uint32_t index);
  const char* take_bytes(std::uint32_t index, std::string_view bytes);
  void finish_answer(std::uint32_t index);
  void fail(std::uint32_t index, const std::string& what);
  void close_connection(Connection& connection);
  void advance(std::uint64_t now_ns);
  Sample sample(std::uint64_t now_ns) const;

  Plan plan_;
  int epoll_;
  std::vector<Connection> connections_;
  std::uint32_t opened_ = 0;     // connections made so far
  std::uint32_t streaming_ = 0;  // Hold: streams that have begun and not ended
  std::uint32_t ended_ = 0;      // connections that will do nothing more
  std::uint64_t started_ns_ = 0;
  std::optional<std::uint64_t> warm_at_ns_;  // when the window begins, once that is known
  std::optional<Sample> begin_;
  std::optional<Sample> end_;
  bool finished_ = false;
  std::uint64_t answers_ = 0;  // complete and right
  std::uint64_t events_ = 0;
  std::uint64_t errors_ = 0;
  std::string first_error_;
  std::vector<std::uint32_t> ages_ns_;  // of the events inside the window
  std::string request_;
};

LoadGenerator::LoadGenerator(const Plan& plan)
    : plan_(plan), epoll_(epoll_create1(EPOLL_CLOEXEC)), connections_(plan.connections) {
  ages_ns_.reserve(4'000'000);
}

void LoadGenerator::run() {
  started_ns_ = monotonic_ns();
  if (plan_.mode == Mode::Hold) begin_ = sample(started_ns_);
  // Far above what any plan takes: a proxy that hangs must not hang the benchmark.
  const std::uint64_t give_up_ns = started_ns_ + 60'000 * kMsNs;
  std::array<epoll_event, 256> events;
  while (!finished_) {
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns > give_up_ns) {
      ++errors_;
      first_error_ = first_error_.empty() ? "not finished after 60 s" : first_error_;
      return;
    }
    open_due_connections(now_ns);
    const timespec wait{.tv_sec = 0, .tv_nsec = static_cast<long>(wait_ns(now_ns))};
    const int count = epoll_pwait2(epoll_, events.data(), events.size(), &wait, nullptr);
    if (count < 0 && errno != EINTR) die("epoll_pwait2", errno);
    for (const epoll_event& event :
         std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
      on_readable(event.data.u32);
    }
    advance(monotonic_ns());
  }
}

std::uint64_t LoadGenerator::opens_at_ns(std::uint32_t index) const {
  return started_ns_ + std::uint64_t{index} * 1'000'000'000 / kConnectionsPerSecond;
}

void LoadGenerator::open_due_connections(std::uint64_t now_ns) {
  while (opened_ < plan_.connections && opens_at_ns(opened_) <= now_ns) open(opened_++);
}

// How long to wait for bytes before there is something else to do.
std::uint64_t LoadGenerator::wait_ns(std::uint64_t now_ns) const {
  if (opened_ == plan_.connections) return 5 * kMsNs;  // the window begins and ends on time enough
  const std::uint64_t next_ns = opens_at_ns(opened_);
  return next_ns > now_ns ? next_ns - now_ns : 0;
}

void LoadGenerator::open(std::uint32_t index) {
  Connection& connection = connections_[index];
  // Blocking: loopback connects at once, and a request of this size fits the socket's buffer.
  connection.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection.fd < 0) die("socket", errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(plan_.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    fail(index, fmt::format("connect: {}", std::strerror(errno)));
    return;
  }
  const int on = 1;
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  epoll_event event{.events = EPOLLIN, .data = {.u32 = index}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
  start_request(index);
}

void LoadGenerator::start_request(std::uint32_t index) {
  Connection& connection = connections_[index];
  Request request;
  request.id = fmt::format("{:016x}{:016x}", index, connection.requests);
  request.stream = plan_.mode != Mode::Answer;
  request.events = plan_.events;
  request.interval_us = plan_.interval_us;
  // First streams of different length, so that later ones do not all end in the same instant.
  if (plan_.mode == Mode::Stream && connection.requests == 0) {
    request.events = 1 + static_cast<std::uint32_t>(std::uint64_t{index} * (plan_.events - 1) /
                                                    plan_.connections);
  }
  ++connection.requests;
  connection.reader.emplace();
  connection.check.emplace(request);
  connection.body.clear();
  request_.clear();
  append_post(request_, request, plan_.body_bytes);
  const ssize_t sent = send(connection.fd, request_.data(), request_.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request_.size())) fail(index, "the request was not taken whole");
}

void LoadGenerator::on_readable(std::uint32_t index) {
  Connection& connection = connections_[index];
  if (connection.fd < 0) return;  // closed by an earlier event of this batch
  std::array<char, 16384> buffer;
  const ssize_t count = recv(connection.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN) return;
  if (count < 0) return fail(index, fmt::format("recv: {}", std::strerror(errno)));
  if (count == 0) return fail(index, "the connection was closed");
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  if (const char* wrong = take_bytes(index, bytes)) {
    return fail(index, fmt::format("{}; last read: {}", wrong, bytes.substr(0, 300)));
  }
}

const char* LoadGenerator::take_bytes(std::uint32_t index, std::string_view bytes) {
  const std::uint64_t now_ns = monotonic_ns();
  Connection& connection = connections_[index];
  if (!connection.reader) return "bytes that nobody asked for";
  if (const char* wrong = connection.reader->feed(bytes, connection.body)) return wrong;
  if (plan_.mode != Mode::Answer) {
    const std::size_t before = ages_ns_.size();
    if (const char* wrong = connection.check->take_events(connection.body, now_ns, ages_ns_)) {
      return wrong;
    }
    events_ += ages_ns_.size() - before;
    if (!begin_) ages_ns_.clear();  // still warming up
    if (connection.check->first_event_seen() && !connection.counted_open) {
      connection.counted_open = true;
      ++streaming_;
    }
  }
  if (!connection.reader->complete()) return nullptr;
  if (const char* wrong = connection.check->finish(connection.body)) return wrong;
  finish_answer(index);
  return nullptr;
}

void LoadGenerator::finish_answer(std::uint32_t index) {
  ++answers_;
  if (plan_.mode != Mode::Hold) return start_request(index);
  --streaming_;
  ++ended_;
  connections_[index].reader.reset();
}

void LoadGenerator::fail(std::uint32_t index, const std::string& what) {
  if (first_error_.empty()) {
    first_error_ =
        fmt::format("connection {}, request {}: {}", index, connections_[index].requests, what);
  }
  ++errors_;
  ++ended_;
  close_connection(connections_[index]);
}

void LoadGenerator::close_connection(Connection& connection) {
  close(connection.fd);
  connection.fd = -1;
}

// Begins and ends the measuring when it is time.
void LoadGenerator::advance(std::uint64_t now_ns) {
  if (ended_ == plan_.connections) {  // Hold has come to its end, or all have failed
    finished_ = true;
    return;
  }
  const bool warm_possible =
      plan_.mode == Mode::Hold ? streaming_ == plan_.connections : opened_ == plan_.connections;
  if (!warm_at_ns_ && warm_possible) warm_at_ns_ = now_ns + plan_.warmup_ns;
  if (!warm_at_ns_ || now_ns < *warm_at_ns_ || end_) return;
  if (plan_.mode == Mode::Hold) {
    end_ = sample(now_ns);
    if (streaming_ != plan_.connections) {
      ++errors_;
      first_error_ = "streams ended before the memory was read";
    }
  } else if (!begin_) {
    ages_ns_.clear();
    begin_ = sample(now_ns);
  } else if (now_ns >= begin_->at_ns + plan_.window_ns) {
    end_ = sample(now_ns);
    finished_ = true;
  }
}

Sample LoadGenerator::sample(std::uint64_t now_ns) const {
  return {.at_ns = now_ns,
          .cpu_ns = plan_.pid == 0 ? 0 : cpu_time_ns(plan_.pid),
          .memory_bytes = plan_.pid == 0 ? 0 : anonymous_bytes(plan_.pid),
          .events = events_,
          .answers = answers_};
}

// The value that `share` of all are at or below.
double percentile_us(std::vector<std::uint32_t>& ages_ns, double share) {
  if (ages_ns.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(ages_ns.size() - 1));
  std::nth_element(ages_ns.begin(), ages_ns.begin() + rank, ages_ns.end());
  return ages_ns[static_cast<std::size_t>(rank)] / 1000.0;
}

// As JSON string content; errors may quote what a proxy sent.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    out += plain ? std::string(1, c) : fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  }
  return out;
}

void LoadGenerator::print_result() {
  if (!begin_ || !end_) {
    ++errors_;
    if (first_error_.empty()) first_error_ = "nothing was measured";
  }
  const Sample begin = begin_.value_or(Sample{});
  const Sample end = end_.value_or(begin);
  fmt::print(R"({{"connections":{},"seconds":{:.6f},"events":{},"answers":{},"answers_checked":{},)"
             R"("cpu_us":{:.3f},"memory_growth_bytes":{},"p50_us":{:.2f},"p99_us":{:.2f},)"
             R"("errors":{},"first_error":"{}"}})"
             "\n",
             plan_.connections, static_cast<double>(end.at_ns - begin.at_ns) / 1e9,
             end.events - begin.events, end.answers - begin.answers, answers_,
             static_cast<double>(end.cpu_ns - begin.cpu_ns) / 1e3,
             static_cast<std::int64_t>(end.memory_bytes - begin.memory_bytes),
             percentile_us(ages_ns_, 0.50), percentile_us(ages_ns_, 0.99), errors_,
             escaped(first_error_));
}

Plan plan_from(const Options& options) {
  Plan plan;
  const std::string mode = options.text("mode");
  if (mode == "stream") {
    plan.mode = Mode::Stream;
  } else if (mode == "answer") {
    plan.mode = Mode::Answer;
  } else if (mode == "hold") {
    plan.mode = Mode::Hold;
  } else {
    die(fmt::format("--mode is stream, answer or hold, not '{}'", mode));
  }
  plan.port = static_cast<std::uint16_t>(options.number("port"));
  plan.pid = static_cast<int>(options.number_or("pid", 0));
  plan.connections = static_cast<std::uint32_t>(options.number("connections"));
  plan.events = static_cast<std::uint32_t>(options.number_or("events", 100));
  plan.interval_us = options.number_or("interval-us", 20'000);
  plan.warmup_ns = options.number_or("warmup-ms", 1000) * kMsNs;
  plan.window_ns = options.number_or("window-ms", 2000) * kMsNs;
  plan.body_bytes = options.number_or("body-bytes", 2048);
  if (plan.connections == 0 || plan.events == 0) {
    die("--connections and --events are at least 1");
  }
  return plan;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  const baton::bench::Options options(argc, argv);
  baton::bench::raise_open_file_limit();
  baton::bench::LoadGenerator generator(baton::bench::plan_from(options));
  generator.run();
  generator.print_result();
}
