// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/trtllm_applier.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

namespace baton::kvcache {
namespace {

// There is about one per running request.
constexpr std::size_t kMostPartial = 65'536;

std::optional<Tier> tier_of_level(std::uint64_t level) {
  if (level == 0) return Tier::Device;
  if (level == 1) return Tier::Host;
  return std::nullopt;
}

}  // namespace

void TrtllmApplier::drop_blocks() {
  writer_.clear();
  partial_.clear();
}

void TrtllmApplier::forget() {
  writer_.forget();
  partial_.clear();
  last_id_.reset();
  window_ = 0;
  size_.reset();
  in_use_ = false;
}

void TrtllmApplier::adopt(const TrtllmApplier& other) {
  last_id_ = other.last_id_;
  window_ = other.window_;
  // The other's configured size says nothing of the engine.
  if (!other.writer_.configured_size()) size_ = other.size_;
  in_use_ = other.in_use_;
  partial_ = other.partial_;
}

void TrtllmApplier::follow(std::uint64_t id, Polled& polled) {
  if (last_id_ && id <= *last_id_) {
    forget();
    ++polled.restarts;
  } else if (last_id_ && id - *last_id_ > 1) {
    drop_blocks();
    polled.lost += id - *last_id_ - 1;
  }
  last_id_ = id;
  polled.last_id = id;
}

// A cache that blocks were in already is made when a process begins.
void TrtllmApplier::heed_creation(const TrtllmEntry& entry, Polled& polled) {
  if (entry.type != TrtllmEntry::Type::Created) {
    in_use_ = true;
    return;
  }
  if (!in_use_) return;
  const auto id = last_id_;
  forget();
  last_id_ = id;
  ++polled.restarts;
}

// The largest window is that of the layers that see all of a prompt.
bool TrtllmApplier::of_main_window(const TrtllmEntry& entry) {
  const std::uint64_t window = entry.window.value_or(window_);
  if (window > window_) {
    if (window_ != 0) drop_blocks();
    window_ = window;
  }
  return window == window_;
}

void TrtllmApplier::apply(TrtllmEntry& entry, Polled& polled) {
  if (entry.id) follow(*entry.id, polled);
  switch (entry.outcome) {
    case Decoded::UnknownType:
      return writer_.count(Skipped::UnknownType);
    case Decoded::TooLarge:
      return writer_.count(Skipped::TooLarge);
    case Decoded::Malformed:
    case Decoded::Broken:
      return writer_.count(Skipped::Malformed);
    case Decoded::Event:
      break;
  }
  heed_creation(entry, polled);
  if (!of_main_window(entry)) {
    if (entry.type != TrtllmEntry::Type::Created) writer_.count(Skipped::NotMainAttention);
    return;
  }
  switch (entry.type) {
    case TrtllmEntry::Type::Stored:
      return store(entry);
    case TrtllmEntry::Type::Removed:
      return remove(entry);
    case TrtllmEntry::Type::Moved:
      return move(entry);
    case TrtllmEntry::Type::Created:
    case TrtllmEntry::Type::Other:
      return;
  }
}

// Only a request's last block may be incomplete, and the engine insists on powers of two: so the
// largest that was seen is the true size, unless it was configured.
bool TrtllmApplier::fit_size(const TrtllmEntry& entry) {
  if (writer_.configured_size()) {
    size_ = writer_.configured_size();
    return true;
  }
  const std::uint32_t largest = std::ranges::max(entry.block_tokens);
  if (std::has_single_bit(largest) && largest > size_.value_or(0)) {
    if (size_) {
      drop_blocks();
      writer_.forget();
    }
    size_ = largest;
  }
  return size_.has_value();
}

void TrtllmApplier::store(TrtllmEntry& entry) {
  Event& event = entry.event;
  if (event.hashes.empty()) return;
  const bool sized = fit_size(entry);
  const std::size_t blocks = event.hashes.size();
  const auto complete = static_cast<std::size_t>(
      std::ranges::find_if(entry.block_tokens,
                           [&](std::uint32_t tokens) { return !sized || tokens != *size_; }) -
      entry.block_tokens.begin());
  const bool tail_is_partial =
      complete + 1 == blocks && (!sized || entry.block_tokens.back() < *size_);
  if (tail_is_partial) {
    if (partial_.size() == kMostPartial) partial_.clear();
    partial_.insert(event.hashes.back());
  } else if (complete < blocks) {
    const std::uint32_t size = entry.block_tokens[complete];
    if (writer_.configured_size()) {
      writer_.refuse_size(size, blocks - complete);
    } else {
      writer_.count(Skipped::BlockSize, blocks - complete);
    }
  }
  if (complete == 0) return;
  event.hashes.resize(complete);
  event.block_size = *size_;
  event.tokens = event.tokens.first(complete * *size_);
  event.extra_key_blocks = static_cast<std::uint32_t>(complete);
  std::erase_if(event.extra_keys, [&](const ExtraKey& key) { return key.block >= complete; });
  store_levels(entry);
}

// The blocks follow each other, so they are stored together, in the first one's tier.
void TrtllmApplier::store_levels(const TrtllmEntry& entry) {
  const auto levels = std::span(entry.levels).first(entry.event.hashes.size());
  const auto first = tier_of_level(levels.front());
  if (!first ||
      !std::ranges::all_of(levels, [](auto level) { return tier_of_level(level).has_value(); }))
    return writer_.count(Skipped::UnknownMedium);
  writer_.store(entry.event, *first);
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const Tier tier = *tier_of_level(levels[i]);
    if (tier == *first) continue;
    const std::span<const EngineHash> block(&entry.event.hashes[i], 1);
    writer_.copy(block, tier);
    writer_.remove(block, *first);
  }
}

void TrtllmApplier::remove(const TrtllmEntry& entry) {
  for (const EngineHash hash : entry.event.hashes) partial_.erase(hash);
  writer_.remove(entry.event.hashes, Tier::Host);
  writer_.remove(entry.event.hashes, Tier::Device);
}

void TrtllmApplier::move(const TrtllmEntry& entry) {
  const auto from = tier_of_level(entry.from_level);
  const auto to = tier_of_level(entry.to_level);
  if (!from || !to) return writer_.count(Skipped::UnknownMedium);
  if (*from == *to || partial_.contains(entry.event.hashes.front())) return;
  writer_.copy(entry.event.hashes, *to);
  writer_.remove(entry.event.hashes, *from);
}

}  // namespace baton::kvcache
