// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/applier.h"

#include "kvcache/events/block_writer.h"
#include "kvcache/events/event_decoder.h"
#include "kvcache/events/event_filter.h"
#include "kvcache/events/trtllm_applier.h"
#include "wire/msgpack_reader.h"

namespace baton::kvcache {

Result<BatchHead> read_batch_head(std::span<const std::byte> payload) {
  wire::MsgpackReader reader(payload);
  const auto opening = open_batch(reader);
  if (!opening) return fail(opening.error());
  for (std::uint32_t i = 0; i < opening->events && !reader.broken(); ++i) reader.skip();
  const auto rank = close_batch(reader, *opening);
  if (!rank) return fail(rank.error());
  return BatchHead{.timestamp = opening->timestamp, .rank = *rank};
}

struct Applier::State {
  State(Index& index, Slot slot, std::optional<std::uint32_t> block_size)
      : writer(index, slot, block_size, tally), trtllm(writer) {}

  Result<BatchHead> apply_batch(std::span<const std::byte> payload);
  void apply(Decoded outcome, const Event& event);
  void apply(const Event& event);

  FeedTally tally;
  BlockWriter writer;
  EventFilter filter;
  TrtllmApplier trtllm;
};

void Applier::State::apply(Decoded outcome, const Event& event) {
  tally.events += event.events;
  switch (outcome) {
    case Decoded::Event:
      return apply(event);
    case Decoded::UnknownType:
      return writer.count(Skipped::UnknownType);
    case Decoded::TooLarge:
      return writer.count(Skipped::TooLarge);
    case Decoded::Malformed:
    case Decoded::Broken:
      return writer.count(Skipped::Malformed);
  }
}

void Applier::State::apply(const Event& event) {
  if (event.type == Event::Type::Cleared) {
    ++tally.cleared;
    return writer.clear();
  }
  const auto tier = filter.classify(event);
  if (!tier) return writer.count(tier.error(), event.events);
  if (event.type == Event::Type::Stored) {
    writer.store(event, *tier);
  } else {
    writer.remove(event.hashes, *tier);
  }
}

Result<BatchHead> Applier::State::apply_batch(std::span<const std::byte> payload) {
  wire::MsgpackReader reader(payload);
  const auto opening = open_batch(reader);
  if (!opening) return fail(opening.error());
  // There may be thousands of feeds: buffers used only while reading belong to the thread.
  thread_local Event event;
  for (std::uint32_t left = opening->events; left > 0; left -= event.events) {
    const Decoded outcome = decode_events(reader, event, left);
    if (outcome == Decoded::Broken) break;
    apply(outcome, event);
  }
  writer.flush();
  const auto rank = close_batch(reader, *opening);
  if (!rank) return fail(rank.error());
  return BatchHead{.timestamp = opening->timestamp, .rank = *rank};
}

Applier::Applier(Index& index, Slot slot, std::optional<std::uint32_t> block_size)
    : state_(std::make_unique<State>(index, slot, block_size)) {}
Applier::~Applier() = default;

Result<BatchHead> Applier::apply_batch(std::span<const std::byte> payload) {
  ++state_->tally.batches;
  auto head = state_->apply_batch(payload);
  if (!head) ++state_->tally.malformed_batches;
  return head;
}

Result<Polled> Applier::apply_trtllm(std::string_view json, std::uint32_t rank) {
  State& state = *state_;
  ++state.tally.batches;
  Polled polled;
  thread_local TrtllmReader reader;
  const auto read = reader.read(json, [&](TrtllmEntry& entry) {
    if (entry.rank != rank) return;
    ++state.tally.events;
    ++polled.events;
    state.trtllm.apply(entry, polled);
  });
  state.writer.flush();
  if (read) return polled;
  ++state.tally.malformed_batches;
  return fail(read.error());
}

void Applier::adopt(const Applier& other) {
  if (!state_->writer.adopt(other.state_->writer)) return;
  state_->filter = other.state_->filter;
  state_->trtllm.adopt(other.state_->trtllm);
}

void Applier::forget() {
  state_->trtllm.forget();
  state_->filter.forget();
}

const FeedTally& Applier::tally() const { return state_->tally; }

std::optional<BlockShape> Applier::shape() const { return state_->writer.shape(); }

std::uint64_t Applier::refused_size() const { return state_->writer.refused_size(); }

bool Applier::resumable() const {
  return state_->writer.all_plain() && state_->filter.knows_nothing_special();
}

}  // namespace baton::kvcache
