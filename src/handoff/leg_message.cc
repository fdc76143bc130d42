// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/leg_message.h"

#include "engine/shared/engine_error.h"
#include "engine/trtllm/trtllm_auth.h"
#include "http_client/request_head.h"
#include "wire/http_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace baton::handoff {
namespace {

// A longer refusal is reduced to its status: refusals are copied, logged and sent as a whole.
constexpr std::size_t kLongestRefusal = std::size_t{1024} * 1024;

// How much of it goes into the body of a leg. The client's own bytes are not copied.
std::size_t size_of(const engine::Progress* progress) {
  return progress ? progress->prompt_token_ids.size() + progress->token_ids.size() : 0;
}

std::size_t size_of(const engine::PrefillOutcome& outcome) {
  return outcome.handoff.size() + outcome.prompt_token_ids.size();
}

}  // namespace

engine::ClientCall LegMessages::call(const fleet::Worker& worker, engine::Leg leg,
                                     const ClientMessage& client, const engine::Progress* progress,
                                     engine::LegName name) const {
  const bool with_ids =
      client.token_ids && engine::sends_token_ids(request_.send_token_ids, worker.spec().engine,
                                                  request_.api, worker.version(), leg);
  return {
      .api = request_.api,
      .body = client.body->object(),
      .model = request_.by_alias ? std::string_view(request_.model->name()) : std::string_view(),
      .choice = request_.choice,
      .prompt = request_.prompt,
      .token_ids = with_ids ? std::string_view(*client.token_ids) : std::string_view(),
      .progress = progress,
      .with_token_ids = request_.continuable,
      .cache_salt = request_.hints->tenant,
      .name = name,
      .stripped = tools_.options.stripped_fields};
}

awaitable<wire::SplicedBody> LegMessages::prefill_body(
    model::HandoffMode mode, engine::ClientCall wanted,
    std::shared_ptr<const engine::HandoffTicket> ticket) const {
  return tools_.cpu.run_sized(size_of(wanted.progress), [mode, wanted, ticket = std::move(ticket)] {
    return engine::dialect_of(mode).prefill_body(wanted, *ticket);
  });
}

awaitable<LegBody> LegMessages::plain_body(engine::ClientCall wanted, model::Engine engine) const {
  return tools_.cpu.run_sized(size_of(wanted.progress), [wanted, engine] {
    return LegBody{.body = engine::plain_body(wanted, engine)};
  });
}

awaitable<LegBody> LegMessages::decode_body(model::HandoffMode mode, engine::ClientCall wanted,
                                            std::shared_ptr<const engine::HandoffTicket> ticket,
                                            std::shared_ptr<const engine::PrefillOutcome> outcome,
                                            engine::DecodePurpose purpose) const {
  const std::size_t size = size_of(wanted.progress) + size_of(*outcome);
  return tools_.cpu.run_sized(size, [this, mode, wanted, ticket = std::move(ticket),
                                     outcome = std::move(outcome), purpose] {
    return LegBody{.body = engine::dialect_of(mode).decode_body(wanted, *ticket, *outcome, purpose),
                   .signature = signature(mode, *ticket, *outcome)};
  });
}

std::string LegMessages::signature(model::HandoffMode mode, const engine::HandoffTicket& ticket,
                                   const engine::PrefillOutcome& outcome) const {
  const model::TrtllmAuth& auth = tools_.options.trtllm_auth;
  if (auth.key.empty()) return {};
  return engine::auth_header(engine::dialect_of(mode).signed_params(ticket, outcome), auth);
}

std::string LegMessages::head(const fleet::Worker& worker, std::optional<std::uint32_t> rank,
                              const wire::Headers& headers, std::size_t body_size,
                              std::string_view request_id, std::string_view signature) const {
  std::string own(signature);
  own.append("X-Request-Id: ").append(request_id).append("\r\n");
  if (rank && worker.spec().engine != model::Engine::Trtllm)
    own += fmt::format("X-data-parallel-rank: {}\r\n", *rank);
  return http_client::request_head("POST", engine::path_of(request_.api), worker.authority(),
                                   headers, body_size, own);
}

awaitable<Result<void>> LegMessages::send(http_client::Exchange& exchange, std::string head,
                                          const wire::SplicedBody& body,
                                          std::string* error_type) const {
  auto sent = co_await exchange.send(head, body.pieces());
  if (!sent) co_return fail(std::move(sent.error()));
  // No engine means anything by another success, and a client would take it for a whole answer.
  if (exchange.head().status == wire::kOk) co_return Result<void>{};
  auto refusal =
      co_await exchange.read_all(std::min(tools_.options.response_bytes, kLongestRefusal));
  const std::size_t size = refusal ? refusal->size() : 0;
  co_return fail(co_await tools_.cpu.run_sized(size, [&] {
    if (error_type && refusal) *error_type = engine::error_type_of(*refusal);
    return engine::read_refusal(exchange.head(), std::move(refusal));
  }));
}

// The leg may be given up while its answer is read; its pinned blocks are then released.
awaitable<Result<engine::PrefillOutcome>> LegMessages::read_prefill(
    http_client::Exchange& exchange, model::HandoffMode mode, const fleet::Worker& worker) const {
  const auto json = co_await exchange.read_all(tools_.options.response_bytes);
  if (!json) co_return fail(json.error());
  const bool pushes = worker.spec().mode() == model::HandoffMode::NixlPush;
  co_return co_await tools_.cpu.run_sized(json->size(), [&] {
    auto outcome = engine::dialect_of(mode).read_prefill_answer(*json);
    if (outcome && pushes) outcome->peer = engine::nixl_peer_in(outcome->handoff);
    return outcome;
  });
}

}  // namespace baton::handoff
