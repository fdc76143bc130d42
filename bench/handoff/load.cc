// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Load for the hand-off benchmark: clients that ask a router for streams and, in turn with that,
// speak the same legs to the same engines themselves. Prints one JSON object. Options in
// bench/handoff/run.

#include "proxy/options.h"
#include "proxy/process_usage.h"
#include "proxy/response_reader.h"
#include "proxy/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace baton::bench {
namespace {

constexpr std::uint64_t kMsNs = 1'000'000;
constexpr timeval kTimeout{.tv_sec = 30, .tv_usec = 0};

// How the legs are spoken without a router.
enum class Directly {
  Never,
  Plain,      // one request to one worker
  Pull,       // vLLM: the decode leg gets what the prefill answered
  Bootstrap,  // SGLang: both at once
};

struct Plan {
  Directly directly = Directly::Never;
  std::uint16_t router = 0;
  std::uint16_t prefill = 0;
  std::uint16_t decode = 0;
  std::uint16_t bootstrap = 0;
  int pid = 0;  // of the router
  std::size_t clients = 0;
  std::size_t prompt_tokens = 0;
  std::size_t answer_tokens = 0;
  std::uint64_t warmup_ns = 0;
  std::uint64_t window_ns = 0;
};

// Role. One kept-alive connection, and one request at a time on it. Any failure ends the program:
//   a run with errors has no result.
class Wire {
 public:
  explicit Wire(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      die(fmt::format("connect to port {}", port), errno);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof(kTimeout));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof(kTimeout));
  }
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void post(std::string_view body) {
    request_.clear();
    fmt::format_to(std::back_inserter(request_),
                   "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                   "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                   body.size());
    request_ += body;
    for (std::string_view rest = request_; !rest.empty();) {
      const ssize_t sent = send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) die("send", errno);
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    reader_ = ResponseReader();
    body_.clear();
  }
  // Returns when the first byte of the answer's body is there.
  void await_first() {
    while (body_.empty()) read_some();
  }
  const std::string& await_all() {
    while (!reader_.complete()) read_some();
    return body_;
  }

 private:
  void read_some() {
    std::array<char, 65536> buffer;
    const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
    if (count < 0) die("recv", errno);
    if (count == 0) die("the connection was closed");
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    if (const char* wrong = reader_.feed(bytes, body_))
      die(fmt::format("{}: {}", wrong, bytes.substr(0, 300)));
  }

  int fd_;
  std::string request_;
  ResponseReader reader_;
  std::string body_;
};

// A whole object out of a JSON text whose strings have no braces in them.
std::string_view object_at(std::string_view json, std::string_view key) {
  const auto at = json.find(key);
  if (at == std::string_view::npos) die(fmt::format("the prefill answered without {}", key));
  const auto begin = json.find('{', at);
  std::size_t depth = 0;
  for (auto i = begin; i < json.size(); ++i) {
    if (json[i] == '{') ++depth;
    if (json[i] == '}' && --depth == 0) return json.substr(begin, i + 1 - begin);
  }
  die("the prefill's answer has no end");
}

void check_stream(std::string_view body) {
  if (!body.ends_with(kDoneEvent) || body.find(R"("finish_reason":"length")") == body.npos)
    die(fmt::format("a stream that is not whole: {}",
                    body.substr(body.size() - std::min<std::size_t>(body.size(), 300))));
}

// Role. One client: asks the router, and in turn with that the engines.
// Confinement. One thread.
class Client {
 public:
  Client(const Plan& plan, std::uint64_t number) : plan_(plan), number_(number) {
    router_.emplace(plan.router);
    if (plan.directly == Directly::Never) return;
    decode_.emplace(plan.decode);
    if (plan.directly != Directly::Plain) prefill_.emplace(plan.prefill);
  }

  void run(const std::atomic<bool>& warm, const std::atomic<bool>& over) {
    while (!over) {
      const bool counts = warm;
      const std::uint64_t routed = through_router();
      if (counts) through_ns.push_back(routed);
      if (plan_.directly == Directly::Never) continue;
      const std::uint64_t spoken = by_itself();
      if (counts) direct_ns.push_back(spoken);
    }
  }

  // Times to the first token.
  std::vector<std::uint64_t> through_ns;
  std::vector<std::uint64_t> direct_ns;

 private:
  // A new prompt each time, so that nobody has it cached. A word and a blank are two tokens of the
  // simulator and eight bytes, as is usual.
  std::string body(std::string_view more) {
    std::string text =
        fmt::format(R"({{"model":"{}","messages":[{{"role":"user","content":"q{}x{} )", kModel,
                    number_, ++requests_);
    for (std::size_t i = 0; i < plan_.prompt_tokens / 2; ++i) text += "already ";
    text += R"("}],)";
    text += more;
    return text;
  }
  std::string stream_fields() const {
    return fmt::format(R"("stream":true,"ignore_eos":true,"max_tokens":{})", plan_.answer_tokens);
  }

  std::uint64_t stream(Wire& wire, const std::string& request) {
    const std::uint64_t begin = monotonic_ns();
    wire.post(request);
    return finish(wire, begin);
  }
  static std::uint64_t finish(Wire& wire, std::uint64_t begin) {
    wire.await_first();
    const std::uint64_t first = monotonic_ns();
    check_stream(wire.await_all());
    return first - begin;
  }

  std::uint64_t through_router() { return stream(*router_, body(stream_fields() + "}")); }

  std::uint64_t by_itself() {
    if (plan_.directly == Directly::Plain) return stream(*decode_, body(stream_fields() + "}"));
    return plan_.directly == Directly::Pull ? pull() : bootstrap();
  }

  std::uint64_t pull() {
    const std::string request = body("");
    const std::string first =
        request + R"("stream":false,"max_tokens":1,"kv_transfer_params":{"do_remote_decode":true,)"
                  R"("do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,)"
                  R"("remote_host":null,"remote_port":null}})";
    std::string second = request + stream_fields() + R"(,"kv_transfer_params":)";
    const std::uint64_t begin = monotonic_ns();
    prefill_->post(first);
    second += object_at(prefill_->await_all(), R"("kv_transfer_params")");
    second += "}";
    decode_->post(second);
    return finish(*decode_, begin);
  }

  std::uint64_t bootstrap() {
    const std::string meeting =
        fmt::format(R"(,"bootstrap_host":"127.0.0.1","bootstrap_port":{},"bootstrap_room":{}}})",
                    plan_.bootstrap, (number_ + 1) << 32 | requests_);
    const std::string request = body("");
    const std::string first = request + R"("stream":false,"max_tokens":1)" + meeting;
    const std::string second = request + stream_fields() + meeting;
    const std::uint64_t begin = monotonic_ns();
    prefill_->post(first);
    decode_->post(second);
    const std::uint64_t taken = finish(*decode_, begin);
    prefill_->await_all();
    return taken;
  }

  const Plan& plan_;
  std::uint64_t number_;
  std::uint64_t requests_ = 0;
  std::optional<Wire> router_;
  std::optional<Wire> prefill_;
  std::optional<Wire> decode_;
};

double percentile_us(std::vector<std::uint64_t>& values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(rank)]) / 1000.0;
}

void sleep_ns(std::uint64_t duration) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(duration));
}

void run(const Plan& plan) {
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < plan.clients; ++i)
    clients.push_back(std::make_unique<Client>(plan, i));
  std::atomic<bool> warm = false;
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (const auto& client : clients)
    threads.emplace_back([&, one = client.get()] { one->run(warm, over); });
  sleep_ns(plan.warmup_ns);
  const std::uint64_t begin = monotonic_ns();
  const std::uint64_t cpu_before = cpu_time_ns(plan.pid);
  warm = true;
  sleep_ns(plan.window_ns);
  over = true;
  // The requests under way are finished, and counted, by both.
  threads.clear();
  const std::uint64_t cpu_after = cpu_time_ns(plan.pid);
  const std::uint64_t end = monotonic_ns();

  std::vector<std::uint64_t> through;
  std::vector<std::uint64_t> direct;
  for (const auto& client : clients) {
    through.insert(through.end(), client->through_ns.begin(), client->through_ns.end());
    direct.insert(direct.end(), client->direct_ns.begin(), client->direct_ns.end());
  }
  if (through.empty()) die("nothing was measured");
  fmt::print(
      R"({{"clients":{},"seconds":{:.6f},"requests":{},"cpu_us":{:.3f},"p50_us":{:.2f},)"
      R"("p99_us":{:.2f},"direct_requests":{},"direct_p50_us":{:.2f},"direct_p99_us":{:.2f}}})"
      "\n",
      plan.clients, static_cast<double>(end - begin) / 1e9, through.size(),
      static_cast<double>(cpu_after - cpu_before) / 1e3, percentile_us(through, 0.5),
      percentile_us(through, 0.99), direct.size(), percentile_us(direct, 0.5),
      percentile_us(direct, 0.99));
}

Plan plan_from(const Options& options) {
  Plan plan;
  const std::string directly = options.text("directly");
  if (directly == "plain") {
    plan.directly = Directly::Plain;
  } else if (directly == "pull") {
    plan.directly = Directly::Pull;
  } else if (directly == "bootstrap") {
    plan.directly = Directly::Bootstrap;
  } else if (directly != "never") {
    die(fmt::format("--directly is never, plain, pull or bootstrap, not '{}'", directly));
  }
  const auto port = [&](const char* name) {
    return static_cast<std::uint16_t>(options.number_or(name, 0));
  };
  plan.router = port("router-port");
  plan.prefill = port("prefill-port");
  plan.decode = port("decode-port");
  plan.bootstrap = port("bootstrap-port");
  plan.pid = static_cast<int>(options.number("pid"));
  plan.clients = options.number("clients");
  plan.prompt_tokens = options.number("prompt-tokens");
  plan.answer_tokens = options.number("answer-tokens");
  plan.warmup_ns = options.number("warmup-ms") * kMsNs;
  plan.window_ns = options.number("window-ms") * kMsNs;
  return plan;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  const baton::bench::Options options(argc, argv);
  baton::bench::run(baton::bench::plan_from(options));
}
