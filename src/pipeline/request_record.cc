// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/request_record.h"

#include "libs/locks/mutex.h"

#include <algorithm>
#include <utility>

namespace baton::pipeline {
namespace {

double seconds(RequestRecord::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double milliseconds(RequestRecord::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Only streams show when their tokens came. A refused request has been counted, and a client that
// left or asked for nonsense says nothing of the fleet.
void tell_slo(const RequestRecord& record) {
  if (!record.trace.admission.slo || !record.stream) return;
  const auto now = RequestRecord::Clock::now();
  if (record.error) {
    if (record.error->info().fault == Fault::Engine) record.trace.admission.slo->failed(now);
    return;
  }
  if (!record.first_token) return;
  std::optional<double> itl;
  if (const auto decode = record.decode_duration())
    itl = seconds(*decode) / static_cast<double>(record.events - 1);
  record.trace.admission.slo->served(seconds(*record.first_token - record.received), itl, now);
}

constexpr std::string_view kRequestsHelp =
    "Requests by model and outcome (ok, or the error's code).";

}  // namespace

ModelMetrics::ModelMetrics(telemetry::Registry& registry, const std::string& model)
    : requests{},
      time_to_first_token(registry.histogram("baton_time_to_first_token_seconds",
                                             "From a request's arrival to its first token.",
                                             {{"model", model}})),
      inter_token(registry.histogram("baton_inter_token_seconds",
                                     "Between two streamed events of an answer.",
                                     {{"model", model}})),
      total_time(registry.histogram("baton_request_duration_seconds",
                                    "From a request's arrival to the end of its answer.",
                                    {{"model", model}})),
      prefill_time(registry.histogram("baton_phase_duration_seconds",
                                      "Duration of a phase of the hand-off.",
                                      {{"model", model}, {"phase", "prefill"}})),
      decode_wait_time(registry.histogram("baton_phase_duration_seconds",
                                          "Duration of a phase of the hand-off.",
                                          {{"model", model}, {"phase", "decode_wait"}})),
      decode_time(registry.histogram("baton_phase_duration_seconds",
                                     "Duration of a phase of the hand-off.",
                                     {{"model", model}, {"phase", "decode"}})),
      prompt_tokens(registry.counter("baton_prompt_tokens_total",
                                     "Prompt tokens as the engines report them.",
                                     {{"model", model}})),
      completion_tokens(registry.counter("baton_completion_tokens_total",
                                         "Generated tokens as the engines report them.",
                                         {{"model", model}})),
      request_bytes(registry.counter("baton_request_bytes_total", "Bytes of request bodies.",
                                     {{"model", model}})),
      response_bytes(registry.counter("baton_response_bytes_total",
                                      "Bytes of answers, without framing.", {{"model", model}})),
      kv_transfer(registry.histogram(
          "baton_kv_transfer_seconds",
          "From the end of prefill to the first token of decode: bounds the transfer from above.",
          {{"model", model}})),
      prompts{},
      tokenize_time(registry.histogram(
          "baton_tokenize_seconds",
          "Rendering and tokenizing a prompt, with the wait for a thread to do it.",
          {{"model", model}})),
      handoff(registry, model) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    prompts[i] = &registry.counter(
        "baton_prompts_total", "Requests by who turned their prompts into token ids.",
        {{"model", model}, {"tokens", std::string(to_string(static_cast<TokenSource>(i)))}});
  }
  for (const ErrorInfo& info : error_table()) {
    requests[static_cast<std::size_t>(info.code)] =
        &registry.counter("baton_requests_total", kRequestsHelp,
                          {{"model", model}, {"outcome", std::string(info.label)}});
  }
  requests.back() = &registry.counter("baton_requests_total", kRequestsHelp,
                                      {{"model", model}, {"outcome", "ok"}});
}

std::string_view to_string(TokenSource source) {
  switch (source) {
    case TokenSource::Off:
      return "off";
    case TokenSource::Local:
      return "local";
    case TokenSource::Engine:
      return "engine";
    case TokenSource::Client:
      return "client";
    case TokenSource::Inexact:
      return "inexact";
    case TokenSource::Failed:
      return "failed";
  }
  return "unknown";
}

void RequestRecord::on_token(ModelMetrics& metrics) {
  const Clock::time_point now = Clock::now();
  if (!first_token) {
    first_token = now;
    if (cache_hit_tracker) cache_hit_tracker->answered();
    metrics.time_to_first_token.observe(seconds(now - received));
  } else {
    metrics.inter_token.observe(seconds(now - last_token));
  }
  last_token = now;
  ++events;
}

std::optional<RequestRecord::Clock::duration> RequestRecord::decode_wait() const {
  // After a migration, the trace is that of the worker that went on.
  if (!first_token || !trace.decode.sent || *first_token < *trace.decode.sent) return std::nullopt;
  return *first_token - *trace.decode.sent;
}

std::optional<RequestRecord::Clock::duration> RequestRecord::prefill_duration() const {
  if (!trace.prefill.sent || !trace.prefill.done) return std::nullopt;
  return *trace.prefill.done - *trace.prefill.sent;
}

std::optional<RequestRecord::Clock::duration> RequestRecord::kv_transfer() const {
  // A whole answer does not show when its first token came.
  if (!stream || !first_token || !trace.prefill.done || !trace.decode.sent) return std::nullopt;
  if (trace.migrations > 0) return std::nullopt;  // the legs are those of the last worker
  return std::max(Clock::duration::zero(), *first_token - *trace.prefill.done);
}

std::optional<RequestRecord::Clock::duration> RequestRecord::decode_duration() const {
  if (!first_token || events < 2) return std::nullopt;
  return last_token - *first_token;
}

scheduling::Outcome outcome_of(const RequestRecord& record) {
  scheduling::Outcome outcome{
      .status = record.status,
      .error = record.error ? std::string(record.error->info().label) : std::string(),
      .retries = record.trace.retries,
      .migrations = record.trace.migrations,
      .prompt_tokens = {},
      .cached_tokens = {},
      .time_to_first_token = {}};
  if (record.usage) {
    outcome.prompt_tokens = record.usage->prompt_tokens;
    outcome.cached_tokens = record.usage->cached_tokens;
  }
  if (record.first_token) outcome.time_to_first_token = *record.first_token - record.received;
  return outcome;
}

RequestLedger::RequestLedger(telemetry::Registry& registry, telemetry::Logger& log,
                             bool log_requests)
    : registry_(registry),
      log_(log),
      log_requests_(log_requests),
      unknown_(registry, "unknown"),
      limits_(registry) {}

ModelMetrics& RequestLedger::metrics(std::string_view model) {
  {
    const locks::SharedLock lock(mutex_);
    const auto found = models_.find(model);
    if (found != models_.end()) return *found->second;
  }
  const locks::Lock lock(mutex_);
  auto& entry = models_[std::string(model)];
  if (!entry) entry = std::make_unique<ModelMetrics>(registry_, std::string(model));
  return *entry;
}

void RequestLedger::close(const RequestRecord& record, ModelMetrics& metrics) {
  const auto total = RequestRecord::Clock::now() - record.received;
  const std::size_t outcome =
      record.error ? static_cast<std::size_t>(record.error->code()) : ModelMetrics::kOutcomes - 1;
  metrics.requests[outcome]->add();
  if (record.error) limits_.count(*record.error);
  metrics.total_time.observe(seconds(total));
  metrics.prompts[static_cast<std::size_t>(record.tokens)]->add();
  if (record.tokenize_time) metrics.tokenize_time.observe(seconds(*record.tokenize_time));
  metrics.request_bytes.add(record.request_bytes);
  metrics.response_bytes.add(record.response_bytes);
  const auto prefill = record.prefill_duration();
  const auto transfer = record.kv_transfer();
  if (prefill) metrics.prefill_time.observe(seconds(*prefill));
  if (transfer) metrics.kv_transfer.observe(seconds(*transfer));
  const auto decode_wait = record.decode_wait();
  const auto decode = record.decode_duration();
  if (decode_wait) metrics.decode_wait_time.observe(seconds(*decode_wait));
  if (decode) metrics.decode_time.observe(seconds(*decode));
  tell_slo(record);
  if (record.trace.admission.pool && record.trace.decode.sent && record.first_token) {
    const auto now = RequestRecord::Clock::now();
    record.trace.admission.pool->work().decoded(seconds(now - *record.trace.decode.sent), now);
  }
  if (record.usage) {
    metrics.prompt_tokens.add(
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, record.usage->prompt_tokens)));
    metrics.completion_tokens.add(
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, record.usage->completion_tokens)));
  }
  if (!log_requests_) return;

  using Value = decltype(telemetry::Field::value);
  const auto ms = [](const auto& duration) {
    return duration ? Value(milliseconds(*duration)) : Value();
  };
  const auto waited = [](std::chrono::nanoseconds time) {
    return time.count() == 0 ? Value() : Value(milliseconds(time));
  };
  const auto text = [](std::string_view known) { return known.empty() ? Value() : Value(known); };
  const auto count = [](std::optional<std::int64_t> known) {
    return known ? Value(*known) : Value();
  };
  const auto rank = [](const handoff::LegTrace& leg) {
    return leg.rank ? Value(static_cast<std::int64_t>(*leg.rank)) : Value();
  };
  const auto some = [](std::size_t number) {
    return number == 0 ? Value() : Value(static_cast<std::int64_t>(number));
  };
  const std::optional<engine::Usage>& usage = record.usage;
  std::optional<RequestRecord::Clock::duration> ttft;
  if (record.first_token) ttft = *record.first_token - record.received;
  // Clients' errors are their business; the engines' and the router's are the operator's.
  const bool ours = record.error && record.error->info().fault != Fault::Client;
  log_.write(
      ours ? telemetry::Level::Warning : telemetry::Level::Info, "request",
      {{"id", record.id},
       {"path", record.path},
       {"model", text(record.model)},
       {"stream", record.stream},
       {"outcome", record.error ? record.error->info().label : std::string_view("ok")},
       {"status", static_cast<std::int64_t>(record.status)},
       {"prefill_worker", text(record.trace.prefill.worker)},
       {"prefill_rank", rank(record.trace.prefill)},
       {"decode_worker", text(record.trace.decode.worker)},
       {"decode_rank", rank(record.trace.decode)},
       {"retries", some(record.trace.retries)},
       {"migrations", some(record.trace.migrations)},
       {"queue_class", text(record.trace.admission.waited.policy_class)},
       {"queue_ms", waited(record.trace.admission.waited.queued)},
       {"follow_ms", waited(record.trace.admission.waited.followed)},
       {"total_ms", milliseconds(total)},
       {"ttft_ms", ms(ttft)},
       {"tokens", to_string(record.tokens)},
       {"tokens_reason", text(record.tokens_reason)},
       {"tokenize_ms", ms(record.tokenize_time)},
       {"prompt_length", some(record.prompt_length)},
       {"prefill_ms", ms(prefill)},
       {"kv_transfer_ms", ms(transfer)},
       {"decode_wait_ms", ms(decode_wait)},
       {"decode_ms", ms(decode)},
       {"prompt_tokens", count(usage ? std::optional(usage->prompt_tokens) : std::nullopt)},
       {"predicted_cached_tokens",
        count(record.cache_hit_tracker ? record.cache_hit_tracker->predicted() : std::nullopt)},
       {"cached_tokens", count(usage ? usage->cached_tokens : std::nullopt)},
       {"completion_tokens", count(usage ? std::optional(usage->completion_tokens) : std::nullopt)},
       {"events", static_cast<std::int64_t>(record.events)},
       {"bytes_in", static_cast<std::int64_t>(record.request_bytes)},
       {"bytes_out", static_cast<std::int64_t>(record.response_bytes)},
       {"error", record.error ? text(record.error->message()) : Value()}});
}

}  // namespace baton::pipeline
