// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/bench.h"

#include "core/cancellation.h"
#include "net/await.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "tools/loadgen/budget.h"
#include "tools/loadgen/client.h"
#include "tools/loadgen/load_thread.h"
#include "tools/loadgen/request_body.h"
#include "tools/loadgen/workload.h"
#include "wire/json_array.h"
#include "wire/json_object.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::loadgen {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
constexpr milliseconds kAnswerTimeout{10'000};
constexpr milliseconds kMetricsTimeout{5'000};
constexpr std::chrono::seconds kPollEvery{1};
constexpr std::chrono::seconds kCutPatience{5};

Result<std::string> first_model(std::string_view page) {
  const auto object = wire::JsonObject::parse(page);
  const auto data = object ? object->find("data") : std::nullopt;
  const auto first = data ? wire::first_element(*data) : std::nullopt;
  const auto model = first ? wire::JsonObject::within(*first) : std::nullopt;
  const auto id = model ? model->find_string("id") : std::nullopt;
  if (id) return *id;
  return fail(Errc::ModelNotFound, "/v1/models names no model; say which with --model");
}

// One call, on this thread.
Result<std::string> get(const Server& server, std::string_view path) {
  asio::io_context io(1);
  net::Deadlines deadlines(io);
  Cancellation never;
  Client client(io, deadlines, server, never);
  Result<std::string> answer;
  net::TaskGroup tasks(io, [](std::exception_ptr thrown) { std::rethrow_exception(thrown); });
  const auto ask = [](Client& who, std::string_view what,
                      Result<std::string>& into) -> awaitable<void> {
    into = co_await who.get(what, kAnswerTimeout);
  };
  // It ends before this function does, so the lambda outlives it, too.
  // Outlive the task: who, what, into
  tasks.spawn(ask(client, path, answer));
  while (tasks.running() > 0) io.run_one();
  return answer;
}

Result<std::string> choose_model(const Plan& plan, const Server& server) {
  if (!plan.options.model.empty()) return plan.options.model;
  const auto page = get(server, "/v1/models");
  if (page) return first_model(*page);
  return fail(
      Errc::EngineUnreachable,
      fmt::format(
          "{}/v1/models does not answer ({}): is the endpoint up? --model NAME goes without asking",
          plan.options.url, page.error().message()));
}

Result<std::optional<Server>> find_admin(const Options& options) {
  if (options.admin.empty()) return std::nullopt;
  auto server = find_server(options.admin, options.admin_key_file, "", {});
  if (!server) return fail(server.error());
  if (const auto page = get(*server, "/metrics"); !page) {
    return fail(Errc::EngineUnreachable,
                fmt::format("--admin {} has no /metrics ({}): give the router's admin address, or "
                            "leave it out",
                            options.admin, page.error().message()));
  }
  return *std::move(server);
}

// Role. Watches over a run from the main thread: its end, its signals, the router's own figures.
// Confinement. One thread.
class Conductor {
 public:
  Conductor(const Run& run, Progress progress, const std::function<void(std::string_view)>& tell,
            const Server* admin)
      : run_(run), progress_(std::move(progress)), tell_(tell) {
    for (unsigned i = 0; i < run.plan.options.threads; ++i)
      threads_.push_back(std::make_unique<LoadThread>(run, i));
    if (admin) admin_.emplace(io_, deadlines_, *admin, stop_);
  }

  void conduct() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      interrupted_ = true;
      cut();
      // A second signal ends the process without a result.
      signals_.clear();
    });
    for (const auto& thread : threads_) thread->start();
    if (admin_) tasks_.spawn(poll());
    tasks_.spawn(watch());
    while (tasks_.running() > 0) io_.run_one();
    if (const std::string rest = progress_.end(); !rest.empty()) tell_(rest);
    for (const auto& thread : threads_) thread->join();
    for (const auto& thread : threads_) {
      if (const auto problem = thread->problem()) std::rethrow_exception(problem);
    }
  }

  Tally tally() const {
    Tally all = threads_.front()->tally();
    for (std::size_t i = 1; i < threads_.size(); ++i) all.merge(threads_[i]->tally());
    return all;
  }
  FleetHistory fleet() { return std::move(fleet_); }
  bool interrupted() const { return interrupted_; }

 private:
  bool idle() const {
    for (const auto& thread : threads_) {
      if (!thread->idle()) return false;
    }
    return true;
  }

  void cut() {
    for (const auto& thread : threads_) thread->cut();
    if (!cut_at_) cut_at_ = Clock::now();
  }

  Status status() const {
    LoadThread::Live live;
    for (const auto& thread : threads_) thread->add_to(live);
    return {.elapsed = Clock::now() - run_.start,
            .sent = live.sent,
            .ended = live.ended,
            .in_flight = run_.budget.in_flight(),
            .refused = live.refused,
            .failed = live.failed,
            .ttft_p50_ms = live.ttft.quantile_ms(0.5),
            .ttft_p99_ms = live.ttft.quantile_ms(0.99)};
  }

  // When the duration has passed nothing new is sent; what still runs after the drain is cut.
  void enforce(Clock::duration elapsed) {
    if (!run_.plan.duration) return;
    if (!finished_ && elapsed >= *run_.plan.duration) {
      finished_ = true;
      for (const auto& thread : threads_) thread->finish();
    }
    if (elapsed >= *run_.plan.duration + run_.plan.options.drain) cut();
  }

  awaitable<void> watch() {
    asio::steady_timer timer(io_);
    while (!idle()) {
      const Clock::time_point now = Clock::now();
      enforce(now - run_.start);
      if (cut_at_ && now - *cut_at_ > kCutPatience) break;
      if (const std::string line = progress_.tell(status()); !line.empty()) tell_(line);
      timer.expires_after(kLook);
      co_await timer.async_wait(net::kAwait);
    }
    stop_.request({Errc::ShuttingDown, "the run is over"});
    signals_.cancel();
  }

  awaitable<void> poll() {
    asio::steady_timer timer(io_);
    const Cancellation::Listener wakes(stop_, [&timer] { timer.cancel(); });
    for (auto next = run_.start; !stop_.requested(); next += kPollEvery) {
      timer.expires_at(next);
      co_await timer.async_wait(net::kAwait);
      if (stop_.requested()) co_return;
      const auto page = co_await admin_->get("/metrics", kMetricsTimeout);
      const std::chrono::duration<double> at = Clock::now() - run_.start;
      if (page) fleet_.add(read_metrics(*page, at.count()));
    }
  }

  const Run run_;
  Progress progress_;
  const std::function<void(std::string_view)>& tell_;
  asio::io_context io_{1};
  net::Deadlines deadlines_{io_};
  net::TaskGroup tasks_{io_, [](std::exception_ptr thrown) { std::rethrow_exception(thrown); }};
  asio::signal_set signals_{io_, SIGINT, SIGTERM};
  Cancellation stop_;
  std::optional<Client> admin_;
  FleetHistory fleet_;
  bool interrupted_ = false;
  bool finished_ = false;
  std::optional<Clock::time_point> cut_at_;
  std::vector<std::unique_ptr<LoadThread>> threads_;
};

}  // namespace

Result<Outcome> run_bench(const Plan& plan, Progress::Style style, unsigned width,
                          const std::function<void(std::string_view)>& tell) {
  const Options& options = plan.options;
  const auto workload = make_workload(plan);
  if (!workload) return fail(workload.error());
  const auto server =
      find_server(options.url, options.api_key_file, options.ca_file, options.headers);
  if (!server) return fail(server.error());
  const auto admin = find_admin(options);
  if (!admin) return fail(admin.error());
  const auto model = choose_model(plan, *server);
  if (!model) return fail(model.error());
  std::vector<std::pair<std::string, std::string>> known_workers;
  if (*admin) {
    // Without access to the list, only workers that answer are measured.
    if (const auto answer = get(**admin, "/workers")) known_workers = read_workers(*answer, *model);
  }

  const RequestBody bodies(plan, *model);
  Budget budget(plan.requests);
  const Run run{.plan = plan,
                .workload = **workload,
                .bodies = bodies,
                .server = *server,
                .budget = budget,
                .start = Clock::now()};
  const auto started_at = std::chrono::system_clock::now();
  Goal goal{.requests = plan.requests, .duration = plan.duration};
  if (const auto size = (*workload)->size())
    goal.requests = goal.requests ? std::min(*goal.requests, *size) : *size;
  Conductor conductor(run, Progress(style, goal, width), tell, *admin ? &**admin : nullptr);
  conductor.conduct();
  return Outcome{.tally = conductor.tally(),
                 .fleet = conductor.fleet(),
                 .known_workers = std::move(known_workers),
                 .model = *model,
                 .started_at = started_at,
                 .elapsed = Clock::now() - run.start,
                 .interrupted = conductor.interrupted()};
}

}  // namespace baton::loadgen
