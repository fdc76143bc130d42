// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/self_test.h"

#include "core/cancellation.h"
#include "engine/shared/client_body.h"
#include "engine/vllm/vllm_dialect.h"
#include "net/await.h"
#include "wire/json_object.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::app {
namespace {

using boost::asio::awaitable;
using model::Role;

// A prompt of some blocks, so that there is something to hand over.
constexpr std::string_view kSentence = "Baton hands this on to see that it arrives. ";
constexpr int kSentences = 24;
constexpr std::chrono::seconds kTestTimeout{10};
constexpr std::chrono::milliseconds kTurn{10};
constexpr std::size_t kLargestTestAnswer = 1024 * 1024;

std::string tiny_request(const std::string& model) {
  std::string prompt;
  for (int i = 0; i < kSentences; ++i) prompt += kSentence;
  // Whatever its first token is, the answer must come from the decode worker.
  return fmt::format(
      R"({{"model":{},"prompt":{},"max_tokens":2,"temperature":0,"ignore_eos":true}})",
      wire::json_quote(model), wire::json_quote(prompt));
}

// A healthy worker of the other role, in the same namespace and mode.
std::shared_ptr<fleet::Worker> partner_of(const fleet::Worker& worker, const fleet::Pool& pool) {
  const Role other = worker.spec().role == Role::Prefill ? Role::Decode : Role::Prefill;
  const auto members = pool.workers(other).members();
  const auto found = std::ranges::find_if(members->workers, [&worker](const auto& one) {
    return one->condition() == fleet::Condition::Up && !one->draining() &&
           one->spec().mode() == worker.spec().mode();
  });
  return found == members->workers.end() ? nullptr : *found;
}

scheduling::Pin pin_to(const fleet::Worker& worker) {
  const bool several = worker.ranks() > 1;
  return {.worker = std::to_string(worker.id().value),
          .rank = several ? std::optional<std::uint32_t>(0) : std::nullopt};
}

http_client::PoolOptions test_pool_options(Services& services) {
  return {.connect_timeout = services.config.timeouts.connect,
          .idle_per_worker = 0,
          .header_bytes = services.config.limits.header_bytes,
          .descriptors = &services.descriptors};
}

handoff::Options test_handoff_options(const config::Config& config) {
  return {.timeouts = {.first_byte = kTestTimeout, .idle = kTestTimeout},
          .grace = config.timeouts.handoff_grace,
          .response_bytes = kLargestTestAnswer,
          .trtllm_auth = config.trtllm_auth};
}

}  // namespace

SelfTest::SelfTest(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
                   Services& services)
    : services_(services),
      random_(std::random_device()()),
      pool_(io, deadlines, test_pool_options(services)),
      handoff_(
          pool_, tasks, services.cpu, services.tickets, [this] { return random_(); },
          services.metrics, no_decisions_, test_handoff_options(services.config)) {}

awaitable<Result<void>> SelfTest::run(std::shared_ptr<fleet::Worker> worker, std::string name) {
  if (worker->spec().role == Role::Aggregated) co_return Result<void>{};
  // Polls, because tests are rare and short.
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  while (busy_) {
    timer.expires_after(kTurn);
    co_await timer.async_wait(net::kAwait);
  }
  busy_ = true;
  const auto done = [](bool* busy) { *busy = false; };
  const std::unique_ptr<bool, decltype(done)> at_the_end(&busy_, done);
  co_return co_await hand_over(std::move(worker), std::move(name));
}

awaitable<Result<void>> SelfTest::hand_over(std::shared_ptr<fleet::Worker> worker,
                                            std::string name) {
  const auto model = services_.fleet.find(name);
  const auto pool = model ? model->pool(worker->spec().name_space) : nullptr;
  const auto partner = pool && pool->disaggregated() ? partner_of(*worker, *pool) : nullptr;
  if (!partner) co_return Result<void>{};

  const bool prefills = worker->spec().role == Role::Prefill;
  auto hints = std::make_shared<scheduling::Hints>();
  hints->prefill = pin_to(prefills ? *worker : *partner);
  hints->decode = pin_to(prefills ? *partner : *worker);
  auto body = engine::ClientBody::parse(tiny_request(name));
  if (!body) co_return fail(std::move(body.error()));
  handoff::RequestTrace trace;
  Cancellation cancellation;
  // A worker under test may have failed an earlier one.
  auto answer = co_await handoff_.run({{.model = model,
                                        .api = engine::Api::Completions,
                                        .body = std::move(*body),
                                        .request_id = fmt::format("self-test-{:016x}", random_()),
                                        .hints = std::move(hints),
                                        .worst = fleet::EligibilityTier::Out},
                                       false,
                                       {},
                                       services_.ledger.metrics(name).handoff},
                                      trace, cancellation);
  if (!answer) co_return fail(std::move(answer.error()));
  if (answer->whole())
    co_return fail(Errc::NoHandoff,
                   "the prefill worker ended the request instead of handing it over");
  auto text = co_await answer->stream().read_all(kLargestTestAnswer);
  if (!text) co_return fail(std::move(text.error()));
  answer->first_token();
  answer->finished();
  // That is the prefill worker's fault, and tells nothing of the other.
  if (answer->prefill()->unkept)
    co_return fail(prefills ? Errc::NoHandoff : Errc::NoEligibleWorker,
                   std::string(engine::kNoConnector));
  const auto completion = wire::JsonObject::parse(*text);
  if (!completion || !completion->has("choices"))
    co_return fail(Errc::EngineProtocol, "the decode worker answered without \"choices\"");
  co_return Result<void>{};
}

}  // namespace baton::app
