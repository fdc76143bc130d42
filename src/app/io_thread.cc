// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/io_thread.h"

#include "api/openai_api.h"
#include "api/process_api.h"
#include "api/tokenize_api.h"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <pthread.h>
#include <utility>
#include <vector>

namespace baton::app {
namespace {

http_client::PoolOptions pool_options(Services& services) {
  const config::Config& config = services.config;
  return {.connect_timeout = config.timeouts.connect,
          .idle_per_worker = config.limits.idle_upstreams,
          .header_bytes = config.limits.header_bytes,
          .descriptors = &services.descriptors,
          .use = net::DescriptorUse::Requests,
          .memory = &services.memory};
}

handoff::Options handoff_options(const config::Config& config, telemetry::Logger& log) {
  return {.timeouts = {.first_byte = config.timeouts.first_byte, .idle = config.timeouts.idle},
          .grace = config.timeouts.handoff_grace,
          .response_bytes = config.limits.response_bytes,
          .log = &log,
          .stripped_fields = config.strip_client_fields,
          .trtllm_auth = config.trtllm_auth};
}

pipeline::Options pipeline_options(Services& services) {
  const config::Config& config = services.config;
  // With keys of Baton's own, the client's Authorization is for Baton and is not sent to engines.
  return {.forward_authorization = config.api_keys.empty() ? pipeline::ForwardAuthorization::Yes
                                                           : pipeline::ForwardAuthorization::No,
          .response_bytes = config.limits.response_bytes,
          .handoff_fields = config.client_handoff_fields,
          .tell_workers = config.response_headers,
          .overload_status = config.overload_status,
          .stripped_headers = config.strip_client_headers,
          .request_timeout = config.timeouts.request,
          .memory = &services.memory};
}

std::vector<http::Route> client_routes(pipeline::Pipeline& pipeline, Services& services) {
  auto routes = api::openai_routes(pipeline, services.fleet, services.started_at);
  std::ranges::move(api::tokenize_routes(services.fleet, services.tokenizers, services.cpu,
                                         services.http_metrics.limits),
                    std::back_inserter(routes));
  std::ranges::move(api::process_routes(BATON_VERSION), std::back_inserter(routes));
  return routes;
}

}  // namespace

IoThread::IoThread(Services& services)
    : services_(services),
      random_(std::random_device()()),
      deadlines_(io_),
      lag_(io_,
           [&services](std::chrono::steady_clock::duration late) {
             services.loop_lag.observe(std::chrono::duration<double>(late).count());
           }),
      tasks_(io_, [&services](std::exception_ptr thrown) { services.report(thrown); }),
      pool_(io_, deadlines_, pool_options(services)),
      handoff_(
          pool_, tasks_, services.cpu, services.tickets, [this] { return random_(); },
          services.metrics, services.decisions, handoff_options(services.config, services.log)),
      prompts_(services.tokenizers, services.caches, services.cpu,
               pipeline::EngineTokens(pool_, services.cpu, services.config.limits.response_bytes,
                                      &services.log)),
      pipeline_(services.fleet, services.caches, prompts_, handoff_, tasks_, deadlines_,
                services.ledger, pipeline_options(services)),
      routes_(client_routes(pipeline_, services)) {}

IoThread::~IoThread() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  // A request that is still under way uses the pool, the hand-off and the deadlines as it ends.
  io_.destroy_handlers();
}

void IoThread::start(std::vector<boost::asio::ip::tcp::acceptor> acceptors) {
  for (auto& acceptor : acceptors) listen(std::move(acceptor));
  lag_.start();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "baton-io");
    io_.run();
  });
}

void IoThread::listen(boost::asio::ip::tcp::acceptor acceptor) {
  const config::Config& config = services_.config;
  listeners_.push_back(std::make_unique<http::Listener>(
      std::move(acceptor), deadlines_, tasks_,
      http::SessionContext{.routes = routes_,
                           .keys = services_.keys,
                           .limits = config.limits,
                           .timeouts = config.timeouts,
                           .trust = config.trust,
                           .metrics = services_.http_metrics,
                           .random = [this] { return random_(); },
                           .clients = services_.clients.get(),
                           .memory = &services_.memory},
      http::Listener::ConnectionLimit{.open = services_.client_connections,
                                      .limit = config.limits.connections,
                                      .descriptors = &services_.descriptors},
      services_.tls ? &services_.tls->context() : nullptr));
  listeners_.back()->start();
}

void IoThread::finish() {
  boost::asio::post(io_, [this] {
    for (const auto& listener : listeners_) listener->finish();
    handoff_.finish();
  });
}

void IoThread::retire() {
  boost::asio::post(io_, [this] {
    for (const auto& listener : listeners_) listener->retire();
  });
}

void IoThread::stop(const Error& reason) {
  boost::asio::post(io_, [this, reason] {
    for (const auto& listener : listeners_) listener->stop(reason);
  });
}

void IoThread::drop_everything() {
  boost::asio::post(io_, [this] {
    pool_.shut_down();
    for (const auto& listener : listeners_) listener->abort();
  });
}

void IoThread::forget(model::WorkerId worker) {
  boost::asio::post(io_, [this, worker] {
    pool_.forget(worker);
    handoff_.forget(worker);
  });
}

void IoThread::join() {
  boost::asio::post(io_, [this] {
    lag_.stop();
    deadlines_.stop();
  });
  if (tasks() != 0) io_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace baton::app
