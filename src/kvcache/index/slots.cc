// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/slots.h"

#include <stdexcept>

namespace baton::kvcache {

Slots::~Slots() {
  for (std::atomic<Chunk*>& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

std::uint32_t Slots::open(Holder holder) {
  const locks::Lock hold(mutex_);
  std::uint32_t slot = fresh_;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    if (fresh_ == kMostSlots) throw std::length_error("the index has no slots left");
    if (fresh_ % kPerChunk == 0) {
      chunks_[fresh_ / kPerChunk].store(new Chunk, std::memory_order_release);
    }
    ++fresh_;
  }
  place(slot).holder = holder;
  place(slot).state = std::make_unique<SlotState>(arena_);
  return slot;
}

void Slots::close(std::uint32_t slot) {
  const locks::Lock hold(mutex_);
  place(slot).state.reset();
  free_.push_back(slot);
}

std::size_t Slots::bytes() const {
  const locks::Lock hold(mutex_);
  std::size_t bytes = sizeof(*this) + (fresh_ + kPerChunk - 1) / kPerChunk * sizeof(Chunk);
  for (std::uint32_t slot = 0; slot < fresh_; ++slot) {
    const SlotState* state = place(slot).state.get();
    if (state == nullptr) continue;
    bytes += sizeof(SlotState) + state->tally.bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

std::size_t Slots::memberships() const {
  const locks::Lock hold(mutex_);
  std::size_t count = 0;
  for (std::uint32_t slot = 0; slot < fresh_; ++slot) {
    const SlotState* state = place(slot).state.get();
    if (state != nullptr) count += state->tally.memberships.load(std::memory_order_relaxed);
  }
  return count;
}

}  // namespace baton::kvcache
