// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/kv_reporter.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <utility>
#include <variant>

namespace baton::sim {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

KvChannel::Delivery delivery_under(const std::optional<Fault>& fault) {
  KvChannel::Delivery delivery;
  if (!fault) return delivery;
  switch (fault->kind) {
    case FaultKind::KvLose:
      delivery.keep = false;
      [[fallthrough]];
    case FaultKind::KvDrop:
      delivery.copies = 0;
      break;
    case FaultKind::KvDuplicate:
      delivery.copies = 2;
      break;
    case FaultKind::KvGarbage:
      delivery.garbage = true;
      break;
    case FaultKind::KvDelay:
      delivery.delay =
          std::chrono::nanoseconds(static_cast<std::int64_t>(fault->delay_ms * 1'000'000));
      break;
    default:
      break;
  }
  return delivery;
}

std::vector<BlockChange> with_stores_twice(const std::vector<BlockChange>& changes) {
  std::vector<BlockChange> out;
  for (const BlockChange& change : changes) {
    out.push_back(change);
    if (std::holds_alternative<BlocksStored>(change)) out.push_back(change);
  }
  return out;
}

void scramble_tokens(std::vector<BlockChange>& changes) {
  for (BlockChange& change : changes) {
    auto* stored = std::get_if<BlocksStored>(&change);
    if (stored == nullptr) continue;
    for (TokenId& token : stored->tokens) token ^= 1U;
  }
}

}  // namespace

KvReporter::KvReporter(const Options& options, std::uint32_t rank, BlockPool& pool,
                       FaultTable& faults, std::optional<KvChannel> channel)
    : rank_(rank),
      pool_(pool),
      faults_(faults),
      format_(event_format(options)),
      says_cleared_at_start_(options.engine == model::Engine::Sglang),
      channel_(std::move(channel)) {
  if (options.keeps_kv_events()) fetched_.emplace(options, rank);
  if (says_cleared_at_start_) pool_.clear();
}

void KvReporter::report() {
  std::vector<BlockChange> changes = pool_.take_changes();
  if (changes.empty()) return;
  const auto fault = faults_.strike_kv(std::chrono::steady_clock::now());
  if (fault && fault->kind == FaultKind::KvSilence) return;
  if (fault && fault->kind == FaultKind::KvLie) {
    for (const BlockChange& change : changes) {
      const auto* stored = std::get_if<BlocksStored>(&change);
      if (stored == nullptr || stored->tier != Tier::Device) continue;
      for (const BlockHash& hash : stored->hashes) pool_.forget(hash, stored->scope);
    }
  }
  if (fault && fault->kind == FaultKind::KvScramble) scramble_tokens(changes);
  if (fault && fault->kind == FaultKind::KvDuplicateStores) changes = with_stores_twice(changes);
  publish(std::move(changes), fault);
}

void KvReporter::publish(std::vector<BlockChange> changes, const std::optional<Fault>& fault) {
  const KvChannel::Delivery delivery = delivery_under(fault);
  const std::vector<KvEvent> events = events_of(format_, changes);
  ++counters_.batches;
  counters_.events += events.size();
  if (fetched_) fetched_->add(changes, delivery.copies);
  if (!channel_ || events.empty()) return;
  channel_->send(encode_batch(format_, seconds_since_1970(), events, rank_), delivery,
                 std::chrono::steady_clock::now());
}

void KvReporter::serve() {
  if (channel_) channel_->serve(std::chrono::steady_clock::now());
}

void KvReporter::drain(nlohmann::ordered_json& out) {
  if (fetched_) fetched_->drain(out);
}

void KvReporter::restart() {
  pool_.take_changes();
  pool_.clear();
  if (!says_cleared_at_start_) pool_.take_changes();
  if (channel_) channel_->restart();
  if (fetched_) fetched_->restart();
}

std::optional<std::uint64_t> KvReporter::next_sequence() const {
  return channel_ ? std::optional(channel_->next_sequence()) : std::nullopt;
}

}  // namespace baton::sim
