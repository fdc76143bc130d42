// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The messages of a session's legs, and how their answers are read. The CPU threads make and read
// long ones.
#include "engine/shared/engine_error.h"
#include "engine/trtllm/trtllm_auth.h"
#include "handoff/session.h"
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

std::shared_ptr<const engine::PrefillOutcome> HandoffSession::nothing_answered() {
  static const auto kNothing = std::make_shared<const engine::PrefillOutcome>();
  return kNothing;
}

std::string HandoffSession::signature(model::HandoffMode mode, const engine::HandoffTicket& ticket,
                                      const engine::PrefillOutcome& outcome) const {
  const model::TrtllmAuth& auth = handoff_.options_.trtllm_auth;
  if (auth.key.empty()) return {};
  return engine::auth_header(engine::dialect_of(mode).signed_params(ticket, outcome), auth);
}

engine::ClientCall HandoffSession::call(const fleet::Worker& worker, engine::Leg leg,
                                        const Material& material, const engine::Progress* progress,
                                        engine::LegName name) const {
  const bool with_ids =
      material.token_ids && engine::sends_token_ids(request_.send_token_ids, worker.spec().engine,
                                                    request_.api, worker.version(), leg);
  return {
      .api = request_.api,
      .body = material.body->object(),
      .model = request_.by_alias ? std::string_view(request_.model->name()) : std::string_view(),
      .choice = request_.choice,
      .prompt = request_.prompt,
      .token_ids = with_ids ? std::string_view(*material.token_ids) : std::string_view(),
      .progress = progress,
      .with_token_ids = request_.continuable,
      .cache_salt = request_.hints->tenant,
      .name = name,
      .stripped = handoff_.options_.stripped_fields};
}

awaitable<wire::SplicedBody> HandoffSession::prefill_body(const engine::Dialect& dialect,
                                                          engine::ClientCall wanted) const {
  const std::size_t size = size_of(wanted.progress);
  co_return co_await handoff_.cpu_.run_sized(
      size, [&] { return dialect.prefill_body(wanted, *ticket_); });
}

awaitable<HandoffSession::Parcel> HandoffSession::plain_parcel(engine::ClientCall wanted,
                                                               const fleet::Worker& worker) const {
  co_return co_await handoff_.cpu_.run_sized(size_of(wanted.progress), [&] {
    return Parcel{engine::plain_body(wanted, worker.spec().engine), {}};
  });
}

awaitable<HandoffSession::Parcel> HandoffSession::decode_parcel(
    model::HandoffMode mode, engine::ClientCall wanted, const engine::HandoffTicket& ticket,
    std::shared_ptr<const engine::PrefillOutcome> outcome, engine::DecodePurpose purpose) const {
  const std::size_t size = size_of(wanted.progress) + size_of(*outcome);
  co_return co_await handoff_.cpu_.run_sized(size, [&] {
    return Parcel{engine::dialect_of(mode).decode_body(wanted, ticket, *outcome, purpose),
                  signature(mode, ticket, *outcome)};
  });
}

awaitable<Result<void>> HandoffSession::send(
    http_client::Exchange& exchange, const fleet::Worker& worker, std::optional<std::uint32_t> rank,
    const wire::Headers& headers, const wire::SplicedBody& body, const std::string& request_id,
    std::string_view signature, std::string* error_type) const {
  std::string own(signature);
  own += fmt::format("X-Request-Id: {}\r\n", request_id);
  if (rank && worker.spec().engine != model::Engine::Trtllm)
    own += fmt::format("X-data-parallel-rank: {}\r\n", *rank);
  const std::string head = http_client::request_head("POST", engine::path_of(request_.api),
                                                     worker.authority(), headers, body.size(), own);
  auto sent = co_await exchange.send(head, body.pieces());
  if (!sent) co_return fail(std::move(sent.error()));
  // No engine means anything by another success, and a client would take it for a whole answer.
  if (exchange.head().status == wire::kOk) co_return Result<void>{};
  auto refusal =
      co_await exchange.read_all(std::min(handoff_.options_.response_bytes, kLongestRefusal));
  const std::size_t size = refusal ? refusal->size() : 0;
  co_return fail(co_await handoff_.cpu_.run_sized(size, [&] {
    if (error_type && refusal) *error_type = engine::error_type_of(*refusal);
    return engine::read_refusal(exchange.head(), std::move(refusal));
  }));
}

// The leg may be given up while its answer is read; its pinned blocks are then released.
awaitable<Result<engine::PrefillOutcome>> HandoffSession::read_prefill(
    http_client::Exchange& exchange, const engine::Dialect& dialect,
    const fleet::Worker& worker) const {
  const auto json = co_await exchange.read_all(handoff_.options_.response_bytes);
  if (!json) co_return fail(json.error());
  const bool pushes = worker.spec().mode() == model::HandoffMode::NixlPush;
  co_return co_await handoff_.cpu_.run_sized(json->size(), [&] {
    auto outcome = dialect.read_prefill_answer(*json);
    if (outcome && pushes) outcome->peer = engine::nixl_peer_in(outcome->handoff);
    return outcome;
  });
}

}  // namespace baton::handoff
