// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "handoff/handoff.h"
#include "support/fake_engine.h"
#include "support/io_fixture.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::handoff {

// A Handoff over fake engines, and one request at a time that goes through it.
struct HandoffFixture : test::IoFixture {
  using Role = model::Role;
  using Engine = model::Engine;

  void TearDown() override {
    pool.shut_down();
    run_until([this] { return tasks.running() == 0; });
  }

  // Call once, before the first request: who serves the model "m".
  void serve(Engine engine, std::vector<std::pair<Role, model::Endpoint>> workers) {
    config::Model model;
    model.name = "m";
    for (const auto& [role, endpoint] : workers) {
      model.workers.push_back(
          {.endpoint = endpoint, .engine = engine, .role = role, .bootstrap_port = 8998});
    }
    config.models.push_back(std::move(model));
    fleet = std::make_unique<fleet::Fleet>(config, metrics);
    handoff = std::make_unique<Handoff>(
        pool, tasks, tickets, [this] { return ++draws; },
        Options{.timeouts = timeouts, .response_bytes = 1024 * 1024});
  }

  // Starts a request; `answer` is there once it has been got or refused.
  void begin(engine::Api api, std::string body) {
    answer.reset();
    wire::Headers headers;
    headers.add("X-Request-Id", "id-1");
    Job job{*fleet->find("m"), api, engine::ClientBody::parse(std::move(body)).value(), false,
            std::move(headers)};
    start([this, job]() -> awaitable<void> {
      answer.emplace(co_await handoff->run(job, trail, cancellation));
    });
  }
  void wait_for_answer() {
    run_until([this] { return answer.has_value(); });
  }
  void ask(engine::Api api, std::string body) {
    begin(api, std::move(body));
    wait_for_answer();
  }
  // The rest of a streamed answer.
  std::string read_rest() {
    std::string text;
    run([&]() -> awaitable<void> {
      const auto whole = co_await (*answer)->stream->read_all(1024 * 1024);
      text = whole ? *whole : "failed: " + whole.error().message();
    });
    return text;
  }
  Errc failure() const { return answer->error().code(); }
  std::int64_t in_flight() const {
    std::int64_t total = 0;
    for (const Role role : {Role::Prefill, Role::Decode, Role::Aggregated}) {
      for (const auto& worker : fleet->find("m")->workers(role).workers()) {
        total += worker->in_flight();
      }
    }
    return total;
  }

  engine::ExchangeTimeouts timeouts{.first_byte = std::chrono::seconds(5),
                                    .idle = std::chrono::seconds(5),
                                    .handoff_grace = std::chrono::seconds(5)};
  config::Config config;
  telemetry::Registry metrics;
  std::unique_ptr<fleet::Fleet> fleet;
  engine::UpstreamPool pool{io,
                            deadlines,
                            {.connect_timeout = std::chrono::seconds(5),
                             .idle_per_worker = 8,
                             .header_bytes = 16 * 1024}};
  net::TaskGroup tasks{io, [](std::exception_ptr) { ADD_FAILURE() << "a task threw"; }};
  TicketSource tickets{1'780'000'000'000, 1};
  std::uint64_t draws = 100;
  std::unique_ptr<Handoff> handoff;
  Trail trail;
  Cancellation cancellation;
  std::optional<Result<Answer>> answer;
};

inline nlohmann::json json(const std::string& text) { return nlohmann::json::parse(text); }
inline Error client_gone() { return Error(Errc::ClientGone, "the client left"); }

}  // namespace baton::handoff
