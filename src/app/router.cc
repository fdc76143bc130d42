// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/router.h"

#include "api/admin_api.h"
#include "api/advice_api.h"
#include "api/cache_summary.h"
#include "api/decisions_api.h"
#include "api/index_api.h"
#include "api/workers_api.h"
#include "app/sd_notify.h"
#include "fleet/etcd_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <random>
#include <utility>

namespace baton::app {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// How often the end of running work is looked for.
constexpr std::chrono::milliseconds kPoll{10};
// For requests that were cut short to say so to their clients.
constexpr std::chrono::seconds kLastWords{2};
constexpr std::size_t kAdminConnections = 256;

Random seeded_random() {
  return [source = std::mt19937_64(std::random_device()())]() mutable { return source(); };
}

}  // namespace

Router::Router(config::Config config, Origin origin, Succession succession, telemetry::Logger& log)
    : log_(log),
      memory_trim_(control_),
      services_(std::move(config), log, [this] { memory_trim_.soon(); }),
      deadlines_(control_),
      tasks_(control_, [this](std::exception_ptr thrown) { services_.report(thrown); }),
      self_test_(control_, deadlines_, tasks_, services_),
      health_(control_, deadlines_, tasks_, services_.fleet,
              {.connect_timeout = services_.config.timeouts.connect,
               .idle_per_worker = 1,
               .header_bytes = services_.config.limits.header_bytes,
               .descriptors = &services_.descriptors},
              {services_.config.health, services_.config.canary, services_.config.probe},
              [this](const auto& worker, const std::string& model) {
                return self_test_.run(worker, model);
              }),
      feeds_(
          control_, deadlines_, tasks_, services_.cpu, services_.fleet, services_.caches,
          {.connect_timeout = services_.config.timeouts.connect,
           .idle_per_worker = 1,
           .header_bytes = services_.config.limits.header_bytes,
           .descriptors = &services_.descriptors},
          [this](model::WorkerId worker) { return health_.facts(worker); }, services_.metrics,
          log_),
      signals_(control_, SIGINT, SIGTERM),
      hangup_(control_, SIGHUP),
      timer_(control_),
      admin_source_(services_.fleet),
      admin_keys_(services_.config.admin_keys),
      admin_pool_(control_, deadlines_,
                  {.connect_timeout = services_.config.timeouts.connect,
                   .idle_per_worker = 1,
                   .header_bytes = services_.config.limits.header_bytes,
                   .descriptors = &services_.descriptors,
                   .memory = &services_.memory}),
      admin_prompts_(
          services_.tokenizers, services_.caches, services_.cpu,
          pipeline::EngineTokens(admin_pool_, services_.cpu, services_.config.limits.response_bytes,
                                 &services_.log)),
      route_query_(services_.fleet, services_.caches, admin_prompts_, services_.ledger,
                   seeded_random()),
      inherited_(std::move(succession.inherited)),
      predecessor_(std::move(succession.predecessor)),
      serving_(std::move(succession.serving)) {
  // A client that leaves must not end the process. (A terminal that closes does not, either: its
  // SIGHUP has the configuration read again.)
  std::signal(SIGPIPE, SIG_IGN);
  if (!origin.file.empty()) {
    auto load = [this, read = std::move(origin.load), file = origin.file] {
      return with_tokenizers(read(), file);
    };
    file_ = std::make_unique<fleet::FileSource>(control_, services_.fleet, services_.config,
                                                std::move(origin.file), std::move(load),
                                                services_.metrics, log_);
  }
  if (const auto& etcd = services_.config.etcd) {
    sources_.push_back(std::make_unique<fleet::EtcdSource>(
        control_, deadlines_, tasks_, services_.fleet, *etcd, services_.metrics, log_));
  }
  if (!succession.command.empty()) start_successor(std::move(succession.command));
  feeds_.own_snapshot(!predecessor_);
}

// Joins the CPU threads first: their results return to I/O threads.
Router::~Router() { services_.cpu.join(); }

// A file whose tokenizers cannot be read cannot be used.
Router::Loaded Router::with_tokenizers(Loaded loaded, const std::string& file) {
  if (!loaded) return loaded;
  if (auto read = services_.tokenizers.configure(loaded->models); !read) {
    return std::unexpected(std::vector<config::Problem>{
        {.file = file, .line = 0, .path = "models", .message = read.error().message()}});
  }
  return loaded;
}

Result<void> Router::start() {
  if (auto loaded = load_tls(); !loaded) return loaded;
  if (auto loaded = services_.tokenizers.configure(services_.config.models); !loaded) return loaded;
  // Everything that can fail comes before the first thread.
  if (auto made = make_threads(); !made) return made;
  if (auto made = make_admin(); !made) return made;
  close_unused_sockets();
  say_what_fits(listening_.front().descriptor);
  say_what_memory_is_for();
  if (!predecessor_) open();
  return {};
}

void Router::open() {
  open_ = true;
  feeds_.own_snapshot(true);
  if (admin_) admin_->start();
  for (std::size_t i = 0; i < threads_.size(); ++i) threads_[i]->start(std::move(acceptors_[i]));
  serving_();
}

void Router::say_what_memory_is_for() {
  const MemoryBudget& memory = services_.memory;
  if (memory.largest_body() >= services_.config.limits.body_bytes) return;
  log_.warning("memory_small", {{"limit", static_cast<std::int64_t>(memory.limit())},
                                {"largest_body", static_cast<std::int64_t>(memory.largest_body())},
                                {"hint", "raise limits.memory, or lower limits.body_bytes"}});
}

Result<void> Router::load_tls() {
  if (!services_.config.tls) return {};
  auto loaded = ServerTls::load(control_, *services_.config.tls, log_);
  if (!loaded) return fail(std::move(loaded.error()));
  services_.tls = std::move(*loaded);
  services_.tls->follow();
  return {};
}

Result<void> Router::make_admin() {
  const config::Config& config = services_.config;
  if (!config.admin) return {};
  auto acceptor = make_admin_acceptor(*config.admin);
  if (!acceptor) return fail(std::move(acceptor.error()));
  auto routes = api::admin_routes({.fleet = services_.fleet,
                                   .route_query = route_query_,
                                   .metrics = services_.metrics,
                                   .sources = [this] { return source_states(); },
                                   .draining = [this] { return services_.draining.load(); }});
  std::ranges::move(api::workers_routes(
                        {.fleet = services_.fleet,
                         .admin = admin_source_,
                         .facts = [this](model::WorkerId worker) { return health_.facts(worker); },
                         .cache =
                             [this](const fleet::Worker& worker) {
                               return api::summarize_cache(services_.caches, worker);
                             }}),
                    std::back_inserter(routes));
  std::ranges::move(api::index_routes({.fleet = services_.fleet,
                                       .caches = services_.caches,
                                       .reports = [this] { return feeds_.reports(); }}),
                    std::back_inserter(routes));
  std::ranges::move(api::decisions_routes(services_.decisions), std::back_inserter(routes));
  std::ranges::move(api::advice_routes(services_.fleet), std::back_inserter(routes));
  admin_routes_.emplace(std::move(routes));
  admin_ = std::make_unique<http::Listener>(
      std::move(*acceptor), deadlines_, tasks_,
      http::SessionContext{.routes = *admin_routes_,
                           .keys = admin_keys_,
                           .limits = config.limits,
                           .timeouts = config.timeouts,
                           .trust = config.trust,
                           .metrics = services_.http_metrics,
                           .random = seeded_random(),
                           .memory = &services_.memory},
      http::Listener::ConnectionLimit{
          .open = admin_connections_,
          .limit = std::min(kAdminConnections, services_.descriptors.admin_connections()),
          .when_full = http::WhenFull::CloseIdle},
      nullptr);
  return {};
}

void Router::run() {
  services_.fleet.on_gone([this](model::WorkerId worker) {
    for (auto& thread : threads_) thread->forget(worker);
    self_test_.forget(worker);
    admin_pool_.forget(worker);
  });
  health_.start();
  feeds_.start();
  start_sources();
  if (predecessor_) tasks_.spawn(follow());
  if (successor_) successor_->start();
  await_hangup();
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (!error) on_signal();
  });
  control_.run();
  for (auto& thread : threads_) thread->join();
}

void Router::start_sources() {
  if (file_) file_->start();
  for (const auto& source : sources_) source->start();
}

std::vector<fleet::SourceStatus> Router::source_states() const {
  std::vector<fleet::SourceStatus> states;
  if (file_) states.push_back(file_->status());
  for (const auto& source : sources_) states.push_back(source->status());
  return states;
}

void Router::await_hangup() {
  hangup_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    if (file_) file_->reload();
    if (services_.tls) services_.tls->reload();
    await_hangup();
  });
}

void Router::on_signal() {
  const config::Config& config = services_.config;
  // A second signal means now.
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    timer_.cancel();
    cut_short();
  });
  if (successor_) successor_->give_up();
  log_.info("shutting_down",
            {{"grace_ms", static_cast<std::int64_t>(config.shutdown_grace.count())}});
  if (open_ && !handed_over_) notify_service_manager("STOPPING=1");
  services_.draining = true;
  for (auto& thread : threads_) thread->finish();
  wait_for_tasks(std::chrono::steady_clock::now() + config.shutdown_grace, &Router::cut_short);
}

// Polls, because tasks end on other threads and shutting down happens once.
void Router::wait_for_tasks(std::chrono::steady_clock::time_point until, void (Router::*then)()) {
  deadline_ = until;
  at_deadline_ = then;
  look_for_tasks();
}

void Router::look_for_tasks() {
  if (is_idle()) {
    end();
    return;
  }
  if (std::chrono::steady_clock::now() >= deadline_) {
    (this->*at_deadline_)();
    return;
  }
  timer_.expires_after(kPoll);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) look_for_tasks();
  });
}

// A predecessor also answers operators' requests on connections that they keep.
bool Router::is_idle() const {
  if (handed_over_ && !services_.draining && admin_connections_ != 0) return false;
  return std::ranges::all_of(threads_, [](const auto& thread) { return thread->tasks() == 0; });
}

void Router::cut_short() {
  log_.warning("shutdown_grace_over",
               {{"connections", static_cast<std::int64_t>(services_.client_connections.load())}});
  const Error reason(Errc::ShuttingDown, "the router is shutting down");
  for (auto& thread : threads_) thread->stop(reason);
  wait_for_tasks(std::chrono::steady_clock::now() + kLastWords, &Router::abort_all);
}

void Router::abort_all() {
  for (auto& thread : threads_) thread->drop_everything();
  // Every wait is abortable, so this ends; a bug that keeps it from ending shall not keep the
  // process.
  wait_for_tasks(std::chrono::steady_clock::now() + kLastWords, &Router::end);
}

void Router::end() {
  if (std::exchange(ended_, true)) return;  // a second signal in the last moment
  log_.info("stopped", {});
  health_.stop();
  feeds_.stop();
  self_test_.stop();
  admin_pool_.shut_down();
  memory_trim_.stop();
  if (file_) file_->stop();
  if (services_.tls) services_.tls->stop();
  for (const auto& source : sources_) source->stop();
  signals_.cancel();
  hangup_.cancel();
  if (successor_) successor_->stop();
  if (admin_ && open_) {
    admin_->finish();
    admin_->abort();
  }
  end_when_admin_is_quiet();
}

void Router::end_when_admin_is_quiet() {
  if (tasks_.running() == 0) {
    deadlines_.stop();
    return;
  }
  timer_.expires_after(kPoll);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) end_when_admin_is_quiet();
  });
}

}  // namespace baton::app
