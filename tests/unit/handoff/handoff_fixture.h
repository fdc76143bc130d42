// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "handoff/handoff.h"
#include "net/cpu_pool.h"
#include "support/fake_engine.h"
#include "support/io_fixture.h"
#include "support/plain_model.h"
#include "telemetry/log.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

namespace baton::handoff {

// What clients ask.
inline constexpr const char* kRequest =
    R"({"model":"m","prompt":"p","max_tokens":50,"stream":true})";
inline constexpr const char* kChat = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";
// What a prefill engine answers: it keeps the blocks, or has met the decode engine.
inline constexpr const char* kKept =
    R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"remote_port":5600}})";
inline constexpr const char* kMet = R"({"choices":[{"finish_reason":"length"}]})";

// A Handoff over fake engines, and one request at a time that goes through it.
struct HandoffFixture : test::IoFixture {
  template <class T>
  using awaitable = boost::asio::awaitable<T>;
  using Role = model::Role;
  using Engine = model::Engine;

  void TearDown() override {
    release_cpu();
    answer.reset();
    pool.shut_down();
    run_until([this] { return tasks.running() == 0; });
  }

  static model::WorkerSpec spec(Engine engine, Role role, const model::Endpoint& endpoint) {
    model::WorkerSpec made;
    made.endpoint = endpoint;
    made.engine = engine;
    made.role = role;
    made.bootstrap_port = 8998;
    return made;
  }
  // Call once, before the first request: who serves the model "m". `options` says how.
  void serve(std::vector<model::WorkerSpec> workers) {
    options.name = "m";
    options.workers = std::move(workers);
    config.models.push_back(options);
    fleet = std::make_unique<fleet::Fleet>(config, metrics, log);
    handoff = std::make_unique<Handoff>(
        pool, tasks, cpu, tickets, [this] { return ++draws; }, metrics, decisions,
        Options{.timeouts = timeouts,
                .grace = grace,
                .response_bytes = 2 * 1024 * 1024,
                .release_for = release_for});
  }
  void serve(Engine engine, const std::vector<std::pair<Role, model::Endpoint>>& workers) {
    std::vector<model::WorkerSpec> specs;
    for (const auto& [role, endpoint] : workers) specs.push_back(spec(engine, role, endpoint));
    serve(std::move(specs));
  }

  HandoffRequest job(engine::Api api, std::string body) {
    return {{.model = fleet->find("m"),
             .api = api,
             .body = engine::ClientBody::parse(std::move(body)).value(),
             .request_id = "id-1",
             .hints = std::make_shared<const scheduling::Hints>(hints)},
            false,
            {},
            counters};
  }
  // Starts a request; `answer` is there once it has been got or refused.
  void begin(HandoffRequest wanted) {
    answer.reset();
    start([this, wanted]() -> awaitable<void> {
      answer.emplace(co_await handoff->run(wanted, trace, cancellation));
    });
  }
  void begin(engine::Api api, std::string body) { begin(job(api, std::move(body))); }
  void wait_for_answer() {
    run_until([this] { return answer.has_value(); });
  }
  void ask(engine::Api api, std::string body) {
    begin(api, std::move(body));
    wait_for_answer();
  }
  // The answer as a client reads it: what fails before its first byte is recovered from.
  std::string read_rest() {
    std::string text;
    run([&]() -> awaitable<void> {
      UpstreamResponse& got = **answer;
      while (!got.whole()) {
        const auto piece = co_await got.stream().read();
        if (!piece) {
          const auto recovered = co_await got.recover(piece.error(), nullptr);
          if (recovered) continue;
          text = "failed: " + recovered.error().message();
          co_return;
        }
        if (piece->empty()) {
          got.finished();
          co_return;
        }
        got.first_token();
        text += *piece;
      }
      text = *got.whole();
    });
    return text;
  }
  // For requests without a failure.
  std::string ask_and_read(engine::Api api, std::string body) {
    ask(api, std::move(body));
    return *answer ? read_rest() : "failed: " + answer->error().message();
  }
  void wait_for_legs() {
    run_until([this] { return tasks.running() == 0; });
  }
  // From here on nothing is done by the CPU thread, until release_cpu().
  void hold_cpu() {
    start([this]() -> boost::asio::awaitable<void> {
      co_await cpu.run([this] {
        cpu_held_ = true;
        cpu_hold_.acquire();
        return true;
      });
      cpu_held_ = false;
    });
    run_until([this] { return cpu_held_.load(); });
  }
  void release_cpu() {
    if (!cpu_held_) return;
    cpu_hold_.release();
    run_until([this] { return !cpu_held_; });
  }
  // Something waits for the CPU thread that is held.
  void wait_for_cpu_work() {
    run_until([this] { return cpu.waiting() == 1; });
    EXPECT_EQ(cpu.waiting(), 1U);
  }
  Errc failure() const { return answer->error().code(); }
  fleet::Worker& worker(const model::Endpoint& endpoint) const {
    return *fleet->find_worker(endpoint.to_string());
  }
  std::int64_t in_flight() const {
    std::int64_t total = 0;
    for (const auto& one : fleet->members()) total += one.worker->in_flight();
    return total;
  }

  http_client::ExchangeTimeouts timeouts{.first_byte = std::chrono::seconds(5),
                                         .idle = std::chrono::seconds(5)};
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  std::chrono::milliseconds release_for = std::chrono::seconds(1);
  config::Model options = test::model_in_turn();
  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  Counters counters{metrics, "m"};
  std::unique_ptr<fleet::Fleet> fleet;
  MemoryBudget memory{std::size_t{64} << 20U};
  http_client::UpstreamPool pool{io,
                                 deadlines,
                                 {.connect_timeout = std::chrono::seconds(5),
                                  .idle_per_worker = 8,
                                  .header_bytes = 16 * 1024,
                                  .memory = &memory}};
  int expected_exceptions = 0;
  net::TaskGroup tasks{io, [this](std::exception_ptr) {
                         if (--expected_exceptions < 0) ADD_FAILURE() << "a task threw";
                       }};
  net::CpuPool cpu{1};
  TicketSource tickets{1'780'000'000'000, 1};
  scheduling::DecisionLog decisions{100};
  std::uint64_t draws = 100;
  std::unique_ptr<Handoff> handoff;
  scheduling::Hints hints;
  RequestTrace trace;
  Cancellation cancellation;
  std::optional<Result<UpstreamResponse>> answer;

 private:
  std::counting_semaphore<> cpu_hold_{0};
  std::atomic<bool> cpu_held_ = false;
};

inline nlohmann::json json(const std::string& text) { return nlohmann::json::parse(text); }
inline Error client_gone() { return Error(Errc::ClientGone, "the client left"); }

// A worker that takes a request and hears no more of it until the other side closes.
inline test::FakeEngine::Script waits_to_be_dropped() {
  return [](test::FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  };
}
// One that cannot fetch what the first request is to fetch, and answers all others.
inline test::FakeEngine::Script cannot_fetch_first(std::string response) {
  auto asked = std::make_shared<std::atomic<bool>>(false);
  return [asked, response = std::move(response)](test::FakePeer& peer) {
    while (peer.read_request()) {
      peer.write(asked->exchange(true) ? response : test::response(500, "KV transfer failed"));
    }
  };
}
// One that answers each request when it is told to.
inline test::FakeEngine::Script answers_when_told(std::string response) {
  return [response = std::move(response)](test::FakePeer& peer) {
    while (peer.read_request()) {
      peer.wait_for_proceed();
      peer.write(response);
    }
  };
}

}  // namespace baton::handoff
