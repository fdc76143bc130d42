// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/handoff.h"

#include "engine/engine_error.h"
#include "engine/request_head.h"
#include "engine/stream_event.h"
#include "wire/sse_reader.h"

#include <string_view>
#include <utility>
#include <vector>

namespace baton::handoff {
namespace {

using engine::OnCancel;
using std::chrono::steady_clock;

constexpr std::size_t kLargestErrorBody = 64 * 1024;

std::chrono::microseconds since(steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - start);
}

bool succeeded(const engine::Exchange& exchange) {
  return exchange.head().status >= 200 && exchange.head().status < 300;
}

awaitable<Error> refusal(engine::Exchange& exchange) {
  const int status = exchange.head().status;
  const auto body = co_await exchange.read_all(kLargestErrorBody);
  co_return engine::read_engine_error(status, body ? std::string_view(*body) : std::string_view(),
                                      exchange.head().headers.find("retry-after"));
}

// Reads an answer whose text is of no use. What went wrong in it is: engines also fail after a good
// head.
awaitable<std::optional<Error>> drain(engine::Exchange& exchange, std::size_t limit) {
  const auto type = exchange.head().headers.find("content-type");
  if (!type || !type->starts_with("text/event-stream")) {
    const auto body = co_await exchange.read_all(limit);
    if (!body) co_return body.error();
    const auto answer = wire::JsonObject::parse(*body);
    const auto error = answer ? answer->find("error") : std::nullopt;
    if (error && *error != "null") co_return engine::read_stream_error(*body);
    co_return std::nullopt;
  }
  wire::SseReader reader;
  while (!exchange.done()) {
    const auto piece = co_await exchange.read();
    if (!piece) co_return piece.error();
    reader.feed(*piece);
    while (const auto event = reader.next()) {
      if (event->data.empty()) continue;
      const auto kind = engine::read_stream_event(event->data).kind;
      if (kind == engine::StreamEvent::Kind::Error)
        co_return engine::read_stream_error(event->data);
    }
  }
  co_return std::nullopt;
}

}  // namespace

// Ties the two legs of a hand-off that run at the same time: either one's failure ends the other at
// once, because each would only wait for its own timeout. Both ends live on one thread.
struct PrefillLink {
  engine::Exchange* prefill = nullptr;  // while that leg runs
  engine::Exchange* decode = nullptr;   // while it still needs the prefill leg
  std::optional<Error> failure;         // of the prefill leg

  void prefill_failed(Error error) {
    failure = std::move(error);
    if (decode) decode->drop();
  }
  void decode_failed() {
    if (prefill) prefill->drop();
  }
};

Answer::~Answer() {
  if (!prefill) return;
  // The decode leg ended before it had the KV cache, so nobody will fetch it any more.
  prefill->decode = nullptr;
  prefill->decode_failed();
}

std::optional<Error> Answer::prefill_failure() const {
  return prefill ? prefill->failure : std::nullopt;
}

void Answer::prefill_delivered() {
  if (prefill) prefill->decode = nullptr;
  prefill.reset();
}

Handoff::Handoff(engine::UpstreamPool& pool, net::TaskGroup& tasks, TicketSource& tickets,
                 fleet::Random random, Options options)
    : pool_(pool),
      tasks_(tasks),
      tickets_(tickets),
      random_(std::move(random)),
      options_(options),
      bootstraps_(pool, options.timeouts) {}

awaitable<Result<Answer>> Handoff::run(Job job, Trail& trail, Cancellation& cancellation) {
  const std::size_t decode = job.model.workers(model::Role::Decode).workers().size();
  const std::size_t aggregated = job.model.workers(model::Role::Aggregated).workers().size();
  // Where a model has both kinds, each worker that answers gets an equal share.
  if (aggregated != 0 && random_() % (decode + aggregated) < aggregated) {
    return serve_alone(std::move(job), model::Role::Aggregated, trail, cancellation);
  }
  if (!job.model.disaggregated()) {
    return serve_alone(std::move(job), model::Role::Decode, trail, cancellation);
  }
  const model::Engine kind =
      job.model.workers(model::Role::Decode).workers().front()->spec().engine;
  const engine::Dialect& dialect = engine::dialect_of(kind);
  if (!dialect.can_hand_off(job.call())) {
    return serve_alone(std::move(job), model::Role::Decode, trail, cancellation);
  }
  if (dialect.order() == engine::LegOrder::Together) {
    return prefill_beside_decode(std::move(job), trail, cancellation);
  }
  return prefill_then_decode(std::move(job), trail, cancellation);
}

awaitable<Result<Answer>> Handoff::serve_alone(Job job, model::Role role, Trail& trail,
                                               Cancellation& cancellation) {
  const wire::SplicedBody body = engine::Dialect::plain_body(job.call());
  trail.decode_sent = steady_clock::now();
  auto leg = co_await open_leg(job.model.workers(role), job.api, job.headers, body, OnCancel::Abort,
                               cancellation, trail.decode_worker);
  if (!leg) co_return fail(std::move(leg.error()));
  Answer answer;
  answer.stream = std::move(leg->exchange);
  answer.booking = std::move(leg->booking);
  co_return answer;
}

awaitable<Result<engine::PrefillOutcome>> Handoff::prefill(const Job& job,
                                                           const engine::HandoffTicket& ticket,
                                                           Trail& trail,
                                                           Cancellation& cancellation) {
  fleet::WorkerSet& workers = job.model.workers(model::Role::Prefill);
  const engine::Dialect& dialect = engine::dialect_of(workers.workers().front()->spec().engine);
  const wire::SplicedBody body = dialect.prefill_body(job.call(), ticket);
  const auto start = steady_clock::now();
  const auto leg = co_await open_leg(workers, job.api, job.headers, body, OnCancel::Finish,
                                     cancellation, trail.prefill_worker);
  if (!leg) co_return fail(leg.error());
  const auto json = co_await leg->exchange->read_all(options_.response_bytes);
  if (!json) co_return fail(json.error());
  trail.prefill_time = since(start);
  co_return dialect.read_prefill_answer(*json);
}

awaitable<Result<Answer>> Handoff::prefill_then_decode(Job job, Trail& trail,
                                                       Cancellation& cancellation) {
  engine::HandoffTicket ticket;
  ticket.disagg_request_id = tickets_.next_disagg_request_id();
  auto outcome = co_await prefill(job, ticket, trail, cancellation);
  if (!outcome) co_return fail(std::move(outcome.error()));

  Answer answer;
  // A prefill answers with one choice; a client that wants several gets them all from a decode
  // worker.
  const bool one_choice = job.body->object().find_integer("n").value_or(1) == 1;
  if (outcome->final_answer && one_choice) {
    answer.whole = std::move(outcome->final_answer);
    co_return answer;
  }
  // A client that left meanwhile needs no answer, but the prefill worker holds blocks until a
  // decode worker has fetched them.
  const bool abandoned = cancellation.requested();
  if (abandoned && outcome->handoff.empty()) co_return fail(cancellation.reason());
  fleet::WorkerSet& workers = job.model.workers(model::Role::Decode);
  const engine::Dialect& dialect = engine::dialect_of(workers.workers().front()->spec().engine);
  const auto purpose = abandoned ? engine::DecodePurpose::Release : engine::DecodePurpose::Answer;
  const wire::SplicedBody body = dialect.decode_body(job.call(), ticket, *outcome, purpose);
  trail.decode_sent = steady_clock::now();
  auto leg = co_await open_leg(workers, job.api, job.headers, body,
                               abandoned ? OnCancel::Regardless : OnCancel::AfterFirstBody,
                               cancellation, trail.decode_worker);
  if (!leg) co_return fail(abandoned ? cancellation.reason() : std::move(leg.error()));
  if (abandoned) {
    co_await leg->exchange->read_all(options_.response_bytes);
    co_return fail(cancellation.reason());
  }
  answer.stream = std::move(leg->exchange);
  answer.booking = std::move(leg->booking);
  co_return answer;
}

awaitable<Result<Answer>> Handoff::prefill_beside_decode(Job job, Trail& trail,
                                                         Cancellation& cancellation) {
  fleet::WorkerSet& prefill_workers = job.model.workers(model::Role::Prefill);
  fleet::WorkerSet& decode_workers = job.model.workers(model::Role::Decode);
  fleet::Excluded unreachable;
  while (true) {
    auto booking = prefill_workers.book(unreachable, random_);
    if (!booking) co_return fail(std::move(booking.error()));
    auto decode = decode_workers.book(unreachable, random_);
    if (!decode) co_return fail(std::move(decode.error()));
    const fleet::Worker& prefill_worker = booking->worker();
    const fleet::Worker& decode_worker = decode->worker();
    trail.prefill_worker = prefill_worker.authority();
    trail.decode_worker = decode_worker.authority();

    engine::HandoffTicket ticket;
    ticket.bootstrap_room = TicketSource::room_from(random_());
    ticket.bootstrap_host = prefill_worker.spec().endpoint.host;
    const auto port = co_await bootstraps_.find_port(prefill_worker.id(), prefill_worker.spec());
    if (!port) {
      unreachable.push_back(prefill_worker.id());
      if (!prefill_workers.has_other_than(unreachable)) co_return fail(port.error());
      continue;
    }
    ticket.bootstrap_port = *port;
    if (cancellation.requested()) co_return fail(cancellation.reason());

    trail.decode_sent = steady_clock::now();
    Answer answer;
    answer.prefill = std::make_shared<PrefillLink>();
    answer.booking = std::move(*decode);
    answer.stream = std::make_unique<engine::Exchange>(
        pool_, engine::Target{decode_worker.id(), decode_worker.spec().endpoint}, options_.timeouts,
        &cancellation, OnCancel::AfterFirstBody);
    answer.prefill->decode = answer.stream.get();
    tasks_.spawn(run_prefill_beside(answer.prefill, std::move(*booking), job, ticket));

    const engine::Dialect& dialect = engine::dialect_of(decode_worker.spec().engine);
    const wire::SplicedBody body =
        dialect.decode_body(job.call(), ticket, {}, engine::DecodePurpose::Answer);
    auto sent = co_await send(*answer.stream, decode_worker, job.api, job.headers, body);
    if (sent) co_return answer;

    const std::optional<Error> prefill_failure = answer.prefill_failure();
    const Error& failure = prefill_failure ? *prefill_failure : sent.error();
    const fleet::Worker& failed = prefill_failure ? prefill_worker : decode_worker;
    const fleet::WorkerSet& peers = prefill_failure ? prefill_workers : decode_workers;
    if (prefill_failure) bootstraps_.forget(failed.id());
    unreachable.push_back(failed.id());
    // A worker that was never reached has done nothing: another one, another room.
    const bool another = failure.code() == Errc::EngineUnreachable && !cancellation.requested() &&
                         peers.has_other_than(unreachable);
    if (!another) co_return fail(failure);
  }
}

awaitable<void> Handoff::run_prefill_beside(std::shared_ptr<PrefillLink> link,
                                            fleet::Booking booking, Job job,
                                            engine::HandoffTicket ticket) {
  const fleet::Worker& worker = booking.worker();
  const engine::Dialect& dialect = engine::dialect_of(worker.spec().engine);
  // Not tied to the client: cancelling a prefill in the middle of its transfer can leak its blocks.
  engine::Exchange exchange(pool_, {worker.id(), worker.spec().endpoint}, options_.timeouts,
                            nullptr, OnCancel::Finish);
  link->prefill = &exchange;
  const wire::SplicedBody body = dialect.prefill_body(job.call(), ticket);
  const auto sent = co_await send(exchange, worker, job.api, job.headers, body);
  job.body.reset();
  std::optional<Error> failure;
  if (sent) {
    failure = co_await drain(exchange, options_.response_bytes);
  } else {
    failure = sent.error();
  }
  link->prefill = nullptr;
  if (failure) link->prefill_failed(std::move(*failure));
}

awaitable<Result<Handoff::Leg>> Handoff::open_leg(fleet::WorkerSet& workers, engine::Api api,
                                                  const wire::Headers& headers,
                                                  const wire::SplicedBody& body, OnCancel on_cancel,
                                                  Cancellation& cancellation,
                                                  std::string_view& worker_name) {
  fleet::Excluded unreachable;
  while (true) {
    auto booking = workers.book(unreachable, random_);
    if (!booking) co_return fail(std::move(booking.error()));
    Leg leg{std::move(*booking), nullptr};
    const fleet::Worker& worker = leg.booking.worker();
    worker_name = worker.authority();
    leg.exchange = std::make_unique<engine::Exchange>(
        pool_, engine::Target{worker.id(), worker.spec().endpoint}, options_.timeouts,
        &cancellation, on_cancel);
    auto sent = co_await send(*leg.exchange, worker, api, headers, body);
    if (sent) co_return leg;
    // A worker that was never reached has done nothing: the next one may have the request.
    unreachable.push_back(worker.id());
    const bool another =
        sent.error().code() == Errc::EngineUnreachable && workers.has_other_than(unreachable);
    if (!another) co_return fail(std::move(sent.error()));
  }
}

awaitable<Result<void>> Handoff::send(engine::Exchange& exchange, const fleet::Worker& worker,
                                      engine::Api api, const wire::Headers& headers,
                                      const wire::SplicedBody& body) {
  const std::string head =
      engine::request_head("POST", engine::path_of(api), worker.authority(), headers, body.size());
  auto sent = co_await exchange.send(head, body.pieces());
  if (!sent) co_return fail(std::move(sent.error()));
  if (!succeeded(exchange)) {
    Error refused = co_await refusal(exchange);
    co_return fail(std::move(refused));
  }
  co_return Result<void>{};
}

}  // namespace baton::handoff
