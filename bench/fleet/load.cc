// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Load for the fleet benchmark: clients that ask a router for short answers, at a steady rate or one
// after the other. A failed request is counted and the client goes on. Prints one JSON object.
// Options in bench/fleet/run.

#include "proxy/answer_check.h"
#include "proxy/options.h"
#include "proxy/process_usage.h"
#include "proxy/response_reader.h"
#include "proxy/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::bench {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kMsNs = 1'000'000;
constexpr timeval kTimeout{.tv_sec = 10, .tv_usec = 0};
constexpr std::size_t kBodyBytes = 512;

struct Plan {
  std::uint16_t port = 0;
  int pid = 0;  // of the router
  std::uint64_t clients = 0;
  std::uint64_t rate = 0;    // requests/s of all clients; 0: each sends the next at once
  std::uint64_t warmup = 0;  // requests before anything counts, sent at once
  std::uint64_t window_ns = 0;
};

// What the clients share.
struct Phase {
  std::atomic<std::uint64_t> warming = 0;  // clients that are not warm yet
  std::atomic<bool> counting = false;
  std::atomic<bool> over = false;
};

// Role. One client with one connection, which is made again after a failure.
// Confinement. One thread; what it found is read when that has ended.
class Client {
 public:
  Client(const Plan& plan, std::uint64_t number) : plan_(plan), number_(number) {}
  ~Client() { hang_up(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void run(Phase& phase) {
    for (std::uint64_t i = 0; i < plan_.warmup / plan_.clients && !phase.over; ++i) ask();
    --phase.warming;
    // Clients take turns, so that no two ask at the same instant.
    const std::uint64_t pause_ns = plan_.rate == 0 ? 0 : kSecondNs * plan_.clients / plan_.rate;
    std::uint64_t next_ns = monotonic_ns() + pause_ns * number_ / plan_.clients;
    while (!phase.over) {
      const std::uint64_t now_ns = monotonic_ns();
      if (now_ns < next_ns) std::this_thread::sleep_for(std::chrono::nanoseconds(next_ns - now_ns));
      next_ns += pause_ns;
      const bool counts = phase.counting;
      const std::uint64_t begin_ns = monotonic_ns();
      const bool answered = ask();
      if (counts && answered) taken_ns.push_back(monotonic_ns() - begin_ns);
      if (next_ns < begin_ns) next_ns = begin_ns;  // late: no burst afterwards
    }
  }

  std::vector<std::uint64_t> taken_ns;
  std::uint64_t failed = 0;  // also before it counts
  std::string first_error;

 private:
  bool ask() {
    const std::string wrong = try_ask();
    if (wrong.empty()) return true;
    hang_up();
    if (failed++ == 0) first_error = fmt::format("request {}: {}", requests_, wrong);
    return false;
  }

  // What is wrong; empty where nothing is.
  std::string try_ask() {
    if (fd_ < 0 && !connect_to_router()) return fmt::format("connect: {}", std::strerror(errno));
    Request request;
    request.id = fmt::format("{:016x}{:016x}", number_, ++requests_);
    bytes_.clear();
    append_post(bytes_, request, kBodyBytes);
    if (send(fd_, bytes_.data(), bytes_.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes_.size()))
      return "the request was not taken whole";
    ResponseReader reader;
    std::string body;
    while (!reader.complete()) {
      std::array<char, 16384> buffer;
      const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
      if (count < 0) return fmt::format("recv: {}", std::strerror(errno));
      if (count == 0) return "the connection was closed";
      const std::string_view read(buffer.data(), static_cast<std::size_t>(count));
      if (const char* wrong = reader.feed(read, body))
        return fmt::format("{}: {}", wrong, read.substr(0, 600));
    }
    const char* wrong = AnswerCheck(request).finish(body);
    return wrong == nullptr ? "" : wrong;
  }

  bool connect_to_router() {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(plan_.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return false;
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof(kTimeout));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof(kTimeout));
    return true;
  }

  void hang_up() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  const Plan& plan_;
  const std::uint64_t number_;
  int fd_ = -1;
  std::uint64_t requests_ = 0;
  std::string bytes_;
};

double percentile_us(std::vector<std::uint64_t>& values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(rank)]) / 1000.0;
}

// As JSON string content; errors quote what the router sent.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    out += plain ? std::string(1, c) : fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  }
  return out;
}

void run(const Plan& plan) {
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint64_t i = 0; i < plan.clients; ++i)
    clients.push_back(std::make_unique<Client>(plan, i));
  Phase phase;
  phase.warming = plan.clients;
  std::vector<std::jthread> threads;
  for (const auto& client : clients)
    threads.emplace_back([&phase, one = client.get()] { one->run(phase); });
  while (phase.warming > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::uint64_t begin = monotonic_ns();
  const std::uint64_t cpu_before = cpu_time_ns(plan.pid);
  phase.counting = true;
  std::this_thread::sleep_for(std::chrono::nanoseconds(plan.window_ns));
  phase.over = true;
  threads.clear();  // the requests under way are finished, and counted
  const std::uint64_t cpu_after = cpu_time_ns(plan.pid);
  const std::uint64_t end = monotonic_ns();

  std::vector<std::uint64_t> taken;
  std::uint64_t failed = 0;
  std::string first_error;
  for (const auto& client : clients) {
    taken.insert(taken.end(), client->taken_ns.begin(), client->taken_ns.end());
    failed += client->failed;
    if (first_error.empty()) first_error = std::move(client->first_error);
  }
  fmt::print(R"({{"clients":{},"seconds":{:.6f},"requests":{},"failed":{},"first_error":"{}",)"
             R"("cpu_us":{:.3f},"p50_us":{:.2f},"p99_us":{:.2f},"max_us":{:.2f}}})"
             "\n",
             plan.clients, static_cast<double>(end - begin) / 1e9, taken.size(), failed,
             escaped(first_error), static_cast<double>(cpu_after - cpu_before) / 1e3,
             percentile_us(taken, 0.5), percentile_us(taken, 0.99), percentile_us(taken, 1.0));
}

Plan plan_from(const Options& options) {
  Plan plan;
  plan.port = static_cast<std::uint16_t>(options.number("port"));
  plan.pid = static_cast<int>(options.number("pid"));
  plan.clients = options.number("clients");
  plan.rate = options.number("rate");
  plan.warmup = options.number("warmup-requests");
  plan.window_ns = options.number("window-ms") * kMsNs;
  if (plan.clients == 0) die("--clients is at least 1");
  return plan;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  const baton::bench::Options options(argc, argv);
  baton::bench::run(baton::bench::plan_from(options));
}
