// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "engine/bootstrap_directory.h"
#include "engine/client_body.h"
#include "engine/dialect.h"
#include "engine/exchange.h"
#include "fleet/fleet.h"
#include "handoff/ticket_source.h"
#include "net/task_group.h"
#include "wire/http_message.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace baton::handoff {

using boost::asio::awaitable;

// What is to be done for a client.
struct Job {
  fleet::Model& model;
  engine::Api api;
  std::shared_ptr<const engine::ClientBody> body;
  bool by_alias;          // the client used another name than the workers do
  wire::Headers headers;  // for the workers

  engine::ClientCall call() const {
    return {api, body->object(), by_alias ? std::string_view(model.name()) : std::string_view()};
  }
};

// What the request line in the log tells about the legs.
struct Trail {
  std::string_view prefill_worker;  // host:port, empty where there was no prefill leg
  std::string_view decode_worker;   // also the aggregated one
  std::optional<std::chrono::microseconds> prefill_time;
  std::optional<std::chrono::steady_clock::time_point> decode_sent;
};

struct PrefillLink;

// Where the client's answer comes from. It is one of the two.
struct Answer {
  // The request ended in the prefill: this is the whole answer, as JSON.
  std::optional<std::string> whole;
  // A worker that has answered 2xx and is about to send the body.
  std::unique_ptr<engine::Exchange> stream;

  fleet::Booking booking;                // of the worker behind `stream`
  std::shared_ptr<PrefillLink> prefill;  // a prefill leg that runs beside `stream`
  // Why `stream` ended, where the prefill leg ended it.
  std::optional<Error> prefill_failure() const;
  // The decode worker has the KV cache: what happens to the prefill leg no longer matters.
  void prefill_delivered();

  Answer() = default;
  Answer(Answer&&) = default;
  Answer& operator=(Answer&&) = default;
  ~Answer();
};

struct Options {
  engine::ExchangeTimeouts timeouts;
  std::size_t response_bytes;
};

// Role. The prefill router: gets a request through prefill and decode, in the order and with the
//   fields its engine wants, and never abandons a hand-off half way: what a prefill worker pinned
//   is fetched or released, also when the client has left.
// Confinement. One I/O thread.
// Lifetime. Owned by the thread; outlives its tasks.
class Handoff {
 public:
  Handoff(engine::UpstreamPool& pool, net::TaskGroup& tasks, TicketSource& tickets,
          fleet::Random random, Options options);

  awaitable<Result<Answer>> run(Job job, Trail& trail, Cancellation& cancellation);

 private:
  struct Leg {
    fleet::Booking booking;
    std::unique_ptr<engine::Exchange> exchange;
  };

  awaitable<Result<Answer>> serve_alone(Job job, model::Role role, Trail& trail,
                                        Cancellation& cancellation);
  awaitable<Result<Answer>> prefill_then_decode(Job job, Trail& trail, Cancellation& cancellation);
  awaitable<Result<engine::PrefillOutcome>> prefill(const Job& job,
                                                    const engine::HandoffTicket& ticket,
                                                    Trail& trail, Cancellation& cancellation);
  awaitable<Result<Answer>> prefill_beside_decode(Job job, Trail& trail,
                                                  Cancellation& cancellation);
  awaitable<void> run_prefill_beside(std::shared_ptr<PrefillLink> link, fleet::Booking booking,
                                     Job job, engine::HandoffTicket ticket);
  awaitable<Result<Leg>> open_leg(fleet::WorkerSet& workers, engine::Api api,
                                  const wire::Headers& headers, const wire::SplicedBody& body,
                                  engine::OnCancel on_cancel, Cancellation& cancellation,
                                  std::string_view& worker_name);
  awaitable<Result<void>> send(engine::Exchange& exchange, const fleet::Worker& worker,
                               engine::Api api, const wire::Headers& headers,
                               const wire::SplicedBody& body);

  engine::UpstreamPool& pool_;
  net::TaskGroup& tasks_;
  TicketSource& tickets_;
  fleet::Random random_;
  Options options_;
  engine::BootstrapDirectory bootstraps_;
};

}  // namespace baton::handoff
