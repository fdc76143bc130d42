// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/fan_out.h"

#include "engine/shared/completion_json.h"
#include "engine/shared/usage_total.h"
#include "net/await.h"
#include "wire/http_status.h"
#include "wire/sse_reader.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::pipeline {
namespace {

namespace asio = boost::asio;

using wire::kOk;

// Whole answers are kept, and made into one.
constexpr std::size_t kWholesMemory = 2;

// Role. Wakes coroutines of one thread, one for each notification.
class AsyncEvent {
 public:
  explicit AsyncEvent(const asio::any_io_executor& executor) : timer_(executor) {
    timer_.expires_at(std::chrono::steady_clock::time_point::max());
  }
  void ring() { timer_.cancel_one(); }
  awaitable<void> wait() { co_await timer_.async_wait(net::kAwait); }

 private:
  asio::steady_timer timer_;
};

// Role. Merges the branches of a request into one response, written by one at a time.
// Confinement. One I/O thread.
// Lifetime. Shared by the branches. The response is there until close(); what a branch writes after
//   the client has its error is dropped.
class Merger {
 public:
  Merger(const asio::any_io_executor& executor, ResponseSink& sink, RequestRecord& record,
         net::CpuPool& cpu, std::size_t branches, MemoryBudget* memory)
      : turn_(executor),
        ended_(executor),
        sink_(&sink),
        record_(&record),
        cpu_(cpu),
        usages_(branches),
        memory_(memory),
        wholes_(branches),
        running_(branches) {}

  // One branch writes at a time; the others wait for their turn.
  awaitable<void> take_turn() {
    while (busy_) co_await turn_.wait();
    busy_ = true;
  }
  void end_turn() {
    busy_ = false;
    turn_.ring();
  }

  // Requires: its turn.
  void close() { sink_ = nullptr; }

  awaitable<Result<void>> begin(const wire::Headers& headers) {
    if (!sink_) co_return fail(*error_);
    if (std::exchange(begun_, true)) co_return Result<void>{};
    record_->status = kOk;
    co_return co_await sink_->begin(kOk, headers);
  }
  awaitable<Result<void>> write(std::uint32_t branch, std::string_view data) {
    if (!sink_) co_return fail(*error_);
    const auto renumbered = [&] {
      if (id_.empty()) id_ = response_id(data);
      return engine::renumber(data, branch, id_);
    };
    // Not run_sized(): most events are short, and there are many.
    auto chunk =
        data.size() <= net::CpuPool::kInPlace ? renumbered() : co_await cpu_.run(renumbered);
    if (!chunk) co_return fail(std::move(chunk.error()));
    if (!chunk->usage.empty()) usages_[branch] = std::move(chunk->usage);
    if (chunk->json.empty()) {
      tells_usage_ = true;
      co_return Result<void>{};
    }
    if (frame_.empty()) frame_ = chunk->json;
    const std::string event = fmt::format("data: {}\n\n", chunk->json);
    record_->response_bytes += event.size();
    co_return co_await sink_->write(event);
  }
  Result<void> keep(std::uint32_t branch, std::string_view body) {
    whole_bytes_ += body.size();
    if (!memory_.cover_work(whole_bytes_, kWholesMemory))
      return fail(no_memory_for("the answers of several workers"));
    wholes_[branch] = body;
    return {};
  }

  void branch_ended(std::uint32_t branch, std::optional<Error> error) {
    if (error && !error_) {
      error_ = std::move(error);
      failed_ = branch;
    }
    if (--running_ == 0 || error_) ended_.ring();
  }
  // Or for the first that failed.
  awaitable<void> wait_for_all() {
    while (running_ > 0 && !error_) co_await ended_.wait();
  }
  const std::optional<Error>& error() const { return error_; }
  // Requires: an error.
  std::uint32_t failed() const { return failed_; }

  awaitable<Result<void>> finish_stream(std::size_t choices_per_prompt) {
    std::string closing;
    const std::string usage = engine::total_usage(usages_, choices_per_prompt);
    const auto counts = usage.empty() ? std::nullopt : wire::JsonObject::within(usage);
    if (counts) record_->usage = engine::read_usage(*counts);
    if (tells_usage_ && !usage.empty() && !frame_.empty()) {
      auto event = engine::usage_event(frame_, usage);
      if (!event) co_return fail(std::move(event.error()));
      closing = std::move(*event);
    }
    closing += "data: [DONE]\n\n";
    record_->response_bytes += closing.size();
    if (auto written = co_await sink_->write(closing); !written) co_return written;
    co_return co_await sink_->end();
  }
  awaitable<Result<void>> finish_whole(std::size_t choices_per_prompt) {
    std::size_t size = 0;
    for (const std::string& whole : wholes_) size += whole.size();
    auto merged = co_await cpu_.run_sized(size, [&] {
      auto made = engine::merge_whole(wholes_, choices_per_prompt);
      if (!made) return made;
      if (const auto object = wire::JsonObject::parse(*made))
        record_->usage = engine::usage_of(*object);
      return made;
    });
    if (!merged) co_return fail(std::move(merged.error()));
    record_->status = kOk;
    record_->response_bytes = merged->size();
    co_return co_await sink_->respond(kOk, headers_, *merged);
  }
  void set_headers(const wire::Headers& headers) { headers_ = headers; }

 private:
  static std::string response_id(std::string_view data) {
    const auto chunk = wire::JsonObject::parse(data);
    const auto id = chunk ? chunk->find_string("id") : std::nullopt;
    return id.value_or("");
  }

  AsyncEvent turn_;
  AsyncEvent ended_;
  ResponseSink* sink_;  // null once closed
  RequestRecord* record_;
  net::CpuPool& cpu_;
  std::vector<std::string> usages_;  // raw JSON, by branch
  MemoryShare memory_;               // of wholes_, and of the answer made of them
  std::vector<std::string> wholes_;
  std::size_t whole_bytes_ = 0;
  std::size_t running_;
  bool busy_ = false;
  bool begun_ = false;
  std::string id_;
  std::string frame_;         // the first chunk the client got
  bool tells_usage_ = false;  // a branch had a chunk for its usage
  wire::Headers headers_;     // of a whole answer
  std::optional<Error> error_;
  std::uint32_t failed_ = 0;
};

// Role. The sink of one branch.
class BranchSink final : public ResponseSink {
 public:
  BranchSink(Merger& merger, std::uint32_t branch) : merger_(merger), branch_(branch) {}

  awaitable<Result<void>> respond(int, const wire::Headers& headers,
                                  std::string_view body) override {
    if (branch_ == 0) merger_.set_headers(headers);
    co_return merger_.keep(branch_, body);
  }
  awaitable<Result<void>> begin(int, const wire::Headers& headers) override {
    co_await merger_.take_turn();
    auto begun = co_await merger_.begin(headers);
    merger_.end_turn();
    co_return begun;
  }
  awaitable<Result<void>> write(std::string_view piece) override {
    co_await merger_.take_turn();
    Result<void> written;
    reader_.feed(piece);
    while (const auto event = reader_.next()) {
      if (event->data.empty() || event->data == "[DONE]") continue;
      written = co_await merger_.write(branch_, event->data);
      if (!written) break;
    }
    merger_.end_turn();
    co_return written;
  }
  awaitable<Result<void>> end() override { co_return Result<void>{}; }

 private:
  Merger& merger_;
  std::uint32_t branch_;
  wire::SseReader reader_;
};

// State shared by the branches of a request, until the last of them has ended.
struct Gathering {
  Gathering(const asio::any_io_executor& executor, ResponseSink& sink, RequestRecord& record,
            net::CpuPool& cpu, std::size_t branches, MemoryBudget* memory)
      : merger(executor, sink, record, cpu, branches, memory), records(branches) {}

  Merger merger;
  Cancellation together;
  std::deque<RequestRecord> records;
};

struct BranchTask {
  handoff::Handoff& handoff;
  handoff::HandoffRequest job;
  Delivery delivery;
  std::uint32_t index;
};

awaitable<void> serve_branch(BranchTask task, std::shared_ptr<Gathering> all,
                             ModelMetrics& metrics) {
  RequestRecord& record = all->records[task.index];
  {
    BranchSink sink(all->merger, task.index);
    auto answer = co_await task.handoff.run(std::move(task.job), record.trace, all->together);
    if (answer) {
      auto relayed = co_await relay(*answer, std::move(task.delivery), sink, record, metrics);
      if (!relayed) record.error = std::move(relayed.error());
    } else {
      record.error = std::move(answer.error());
    }
  }
  if (record.error && record.status == 0) record.status = record.error->http_status();
  // Here, because it has ended: the request may end while others still run.
  if (record.cache_hit_tracker && !record.error) record.cache_hit_tracker->finish(record.usage);
  record.trace.page.close(outcome_of(record));
  all->merger.branch_ended(task.index, record.error);
  // The others are of no use without this one.
  if (record.error) all->together.request(*record.error);
}

// The branch whose token the client got first.
const RequestRecord& first_to_speak(const std::deque<RequestRecord>& records) {
  const auto later = RequestRecord::Clock::time_point::max();
  return *std::ranges::min_element(
      records, {}, [&](const RequestRecord& record) { return record.first_token.value_or(later); });
}

}  // namespace

awaitable<Result<void>> serve_branches(FanOut fan_out, Delivery delivery, ResponseSink& sink,
                                       RequestRecord& record, ModelMetrics& metrics,
                                       Cancellation& cancellation) {
  const std::size_t count = fan_out.branches.size();
  const auto executor = co_await asio::this_coro::executor;
  const auto all =
      std::make_shared<Gathering>(executor, sink, record, delivery.cpu, count, fan_out.memory);
  Merger& merger = all->merger;
  const Cancellation::Listener listener(cancellation,
                                        [&] { all->together.request(cancellation.reason()); });
  for (std::size_t i = 0; i < count; ++i) {
    all->records[i].id = record.id;
    all->records[i].stream = record.stream;
    all->records[i].received = record.received;
    handoff::HandoffRequest job = fan_out.job;
    job.choice = fan_out.branches[i].choice;
    job.prompt = fan_out.branches[i].prompt;
    const std::size_t prompt = i / fan_out.choices_per_prompt;
    // Its share of all prompts together.
    job.prompt_tokens = fan_out.job.prompt_tokens * fan_out.choices_per_prompt / count + 1;
    attach_prompt(job, fan_out.tokens, prompt, fan_out.caches, all->records[i]);
    job.request_id = fmt::format("{}-{}", fan_out.job.request_id, i);
    Delivery branch{.api = delivery.api,
                    .include_usage = delivery.include_usage,
                    .response_bytes = delivery.response_bytes,
                    .tell_workers = delivery.tell_workers,
                    .cpu = delivery.cpu,
                    .continuity = {}};
    fan_out.tasks.spawn(serve_branch(
        {fan_out.handoff, std::move(job), std::move(branch), static_cast<std::uint32_t>(i)}, all,
        metrics));
  }
  co_await merger.wait_for_all();
  const RequestRecord& told =
      merger.error() ? all->records[merger.failed()] : first_to_speak(all->records);
  record.trace = told.trace;
  record.trace.page = {};  // each branch has closed its own
  record.first_token = told.first_token;
  for (const RequestRecord& branch : all->records) {
    record.events += branch.events;
    record.last_token = std::max(record.last_token, branch.last_token);
  }
  if (merger.error()) {
    // The client need not wait for the other branches' hand-offs.
    co_await merger.take_turn();
    merger.close();
    merger.end_turn();
    co_return fail(*merger.error());
  }
  if (record.stream) co_return co_await merger.finish_stream(fan_out.choices_per_prompt);
  co_return co_await merger.finish_whole(fan_out.choices_per_prompt);
}

}  // namespace baton::pipeline
