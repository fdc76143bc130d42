// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#define XXH_INLINE_ALL
#include "kvcache/events/sequence.h"

#include <algorithm>
#include <utility>
#include <xxhash.h>

namespace baton::kvcache {
namespace {

// The number of live batches that are remembered. An engine repeats none; the transport repeats the
// last few at most.
constexpr std::size_t kRecent = 64;
// The same after a replay: published copies of its batches come late, after as many others as
// queues hold.
constexpr std::size_t kReplayed = 131'072;
// A batch may be published and lost while a replay is being answered, so one that brought nothing
// is repeated once.
constexpr unsigned kStalled = 2;

Position identify(std::uint64_t sequence, std::span<const std::byte> payload) {
  return {.sequence = sequence, .payload_hash = XXH3_64bits(payload.data(), payload.size())};
}

}  // namespace

Sequence::Sequence(Options options, std::optional<Position> resume, Sink& sink)
    : options_(options), sink_(sink), position_(resume) {
  if (resume) recent_.push_back(*resume);
}

std::optional<Sequence::Wanted> Sequence::wanted() const {
  if (!fetch_) return std::nullopt;
  return fetch_->wanted;
}

FeedState Sequence::state() const {
  if (fetch_) return FeedState::Replaying;
  if (!position_) return FeedState::Waiting;
  if (unconfirmed_) return FeedState::Unconfirmed;
  return incomplete_ ? FeedState::Gap : FeedState::Live;
}

void Sequence::live(std::uint64_t sequence, std::span<const std::byte> payload) {
  const Position batch = identify(sequence, payload);
  if (fetch_) return hold(batch, payload);
  if (!position_) {
    // A feed that starts late asks for the earlier batches.
    if (sequence == 0 || !options_.replayable) return take(batch, payload, Origin::Live);
    fetch();
    return hold(batch, payload);
  }
  if (sequence <= position_->sequence) {
    if (!repeats(batch)) return restart_with(batch, payload);
    unconfirmed_ = false;  // only the same engine repeats an applied batch
    ++counts_.duplicates;
    return;
  }
  if (sequence == position_->sequence + 1) return take(batch, payload, Origin::Live);
  if (options_.replayable) {
    fetch();
    return hold(batch, payload);
  }
  ++counts_.gaps;
  take(batch, payload, Origin::Live);
}

void Sequence::disconnected() {
  // A replayable engine is asked once the connection stands again.
  if (options_.replayable) return;
  broken_ = true;
  unconfirmed_ = position_.has_value();
}

void Sequence::reconnected() {
  if (!options_.replayable) {
    // The doubt began when the connection broke. A batch that ended it came over the new one, whose
    // notice may arrive after its batches.
    if (!std::exchange(broken_, false)) unconfirmed_ = position_.has_value();
    return;
  }
  // Held batches may be of an engine that is gone; if not, they come again.
  drop_held();
  fetch();
}

// The last batch is asked for again, for an engine that does not have it is another one.
void Sequence::fetch() {
  const std::uint64_t from = position_ ? position_->sequence : 0;
  fetch_ = Fetch{.wanted = {.from = from, .round = ++rounds_},
                 .begun_at = position_,
                 .last_reply = {},
                 .confirmed = false};
}

void Sequence::hold(Position batch, std::span<const std::byte> payload) {
  const auto same = held_.find(batch.sequence);
  const bool below = (!held_.empty() && batch.sequence < held_.rbegin()->first) ||
                     (position_ && batch.sequence <= position_->sequence);
  if (same != held_.end() || below) {
    const bool repeated =
        same != held_.end() ? same->second.hash == batch.payload_hash : repeats(batch);
    if (!repeated) return restart_with(batch, payload);
    ++counts_.duplicates;
    return;
  }
  auto before = position_ ? std::optional(position_->sequence) : std::nullopt;
  before = std::max(before, highest_);
  if (before && batch.sequence > *before + 1) ++counts_.gaps;
  highest_ = std::max(highest_.value_or(0), batch.sequence);
  const bool full =
      held_.size() >= options_.held_batches || held_bytes_ + payload.size() > options_.held_bytes;
  if (full && !held_.empty()) {
    overflowed_ = true;
    if (fetch_->last_reply) return;  // It moves: this one is asked for afterwards.
    replay_failed();
    return live(batch.sequence, payload);
  }
  held_bytes_ += payload.size();
  held_.emplace(batch.sequence, Held{.hash = batch.payload_hash,
                                     .payload = std::vector(payload.begin(), payload.end())});
}

bool Sequence::replayed(std::uint64_t sequence, std::span<const std::byte> payload) {
  if (!fetch_ || sequence < fetch_->wanted.from) return false;
  if (fetch_->last_reply && sequence <= *fetch_->last_reply) return false;
  const bool first = !fetch_->last_reply.has_value();
  fetch_->last_reply = sequence;
  const Position batch = identify(sequence, payload);

  if (first && fetch_->begun_at) {
    if (sequence == fetch_->begun_at->sequence) {
      if (batch != *fetch_->begun_at) restart();
      return true;
    }
    // Whether it is the same engine cannot be known any more.
    lose_until(sequence);
  }
  while (!held_.empty() && held_.begin()->first < sequence) take_first_held();
  if (!held_.empty() && held_.begin()->first == sequence) {
    if (held_.begin()->second.hash != batch.payload_hash) {
      // One of the two is of an engine that is gone.
      restart();
      return true;
    }
    held_bytes_ -= held_.begin()->second.payload.size();
    held_.erase(held_.begin());
  }
  take(batch, payload, Origin::Replay);
  return true;
}

void Sequence::replay_done() {
  if (!fetch_) return;
  if (!fetch_->last_reply && fetch_->begun_at) {
    // An engine that does not have the last batch is another one. Held batches may be its own.
    auto held = std::exchange(held_, {});
    const std::size_t bytes = held_bytes_;
    restart();
    held_ = std::move(held);
    held_bytes_ = bytes;
    return;
  }
  conclude(true);
}

void Sequence::replay_interrupted() {
  if (!fetch_) return;
  const bool confirmed = fetch_->confirmed || fetch_->last_reply;
  fetch();
  fetch_->confirmed = confirmed;
}

void Sequence::replay_failed() {
  if (!fetch_) return;
  // It is not confirmed that the engine is still the same.
  if (!fetch_->confirmed && !fetch_->last_reply && fetch_->begun_at) lose_until(std::nullopt);
  conclude(false);
}

void Sequence::conclude(bool may_ask) {
  // Without a position the very first batch is next.
  const auto next = [this] { return position_ ? position_->sequence + 1 : 0; };
  while (!held_.empty() && held_.begin()->first == next()) take_first_held();
  const bool missing = !held_.empty() || (overflowed_ && *highest_ >= next());
  stalled_ = position_ == fetch_->begun_at ? stalled_ + 1 : 0;
  if (missing && may_ask && stalled_ < kStalled) {
    overflowed_ = false;
    return fetch();
  }
  while (!held_.empty()) take_first_held();
  fetch_.reset();
  drop_held();
}

void Sequence::take(Position batch, std::span<const std::byte> payload, Origin origin) {
  if (position_ && batch.sequence != position_->sequence + 1)
    lose(batch.sequence - position_->sequence - 1);
  sink_.apply(payload, origin);
  position_ = batch;
  unconfirmed_ = false;
  remember(batch, origin);
  if (origin == Origin::Replay) ++counts_.replayed;
}

// Published batches come in order: after the first new one there are no copies of those that a
// replay had brought before.
void Sequence::remember(Position batch, Origin origin) {
  if (!recent_.empty() && batch.sequence <= recent_.back().sequence) recent_.clear();
  recent_.push_back(batch);
  const std::size_t most = origin == Origin::Live ? kRecent : kReplayed;
  if (recent_.size() <= most) return;
  const bool many = recent_.size() > 2 * most;
  recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(most));
  if (many) recent_.shrink_to_fit();
}

void Sequence::take_first_held() {
  const auto node = held_.extract(held_.begin());
  held_bytes_ -= node.mapped().payload.size();
  take({.sequence = node.key(), .payload_hash = node.mapped().hash}, node.mapped().payload,
       Origin::Held);
}

// Lost batches may have removed blocks that would be believed in for ever.
void Sequence::lose(std::uint64_t batches) {
  counts_.lost += batches;
  incomplete_ = true;
  position_.reset();
  sink_.forget();
}

void Sequence::lose_until(std::optional<std::uint64_t> sequence) {
  const std::uint64_t unknown = position_->sequence + 1;
  std::uint64_t next = sequence.value_or(held_.empty() ? unknown : held_.begin()->first);
  if (!held_.empty()) next = std::min(next, held_.begin()->first);
  lose(next - unknown);
}

void Sequence::drop_held() {
  held_.clear();
  held_bytes_ = 0;
  highest_.reset();
  overflowed_ = false;
  stalled_ = 0;
}

void Sequence::restart() {
  ++counts_.restarts;
  position_.reset();
  recent_.clear();
  drop_held();
  incomplete_ = false;
  unconfirmed_ = false;
  sink_.forget();
  fetch();
}

void Sequence::restart_with(Position batch, std::span<const std::byte> payload) {
  restart();
  if (options_.replayable && batch.sequence != 0) return hold(batch, payload);
  fetch_.reset();
  take(batch, payload, Origin::Live);
}

bool Sequence::repeats(Position batch) const {
  const auto known = std::ranges::lower_bound(recent_, batch.sequence, {}, &Position::sequence);
  return known != recent_.end() && *known == batch;
}

}  // namespace baton::kvcache
