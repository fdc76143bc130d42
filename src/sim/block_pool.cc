// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/block_pool.h"

#include "sim/answer.h"

#include <algorithm>
#include <ranges>

namespace baton::sim {

BlockPool::BlockPool(std::uint32_t blocks, std::uint32_t block_size)
    : block_size_(block_size), blocks_(blocks) {
  free_.reserve(blocks);
  for (std::uint32_t id = blocks; id > 0; --id) free_.push_back(id - 1);
}

std::uint32_t BlockPool::blocks_for(std::size_t tokens) const {
  return static_cast<std::uint32_t>((tokens + block_size_ - 1) / block_size_);
}

std::optional<BlockPool::Allocation> BlockPool::allocate(std::span<const TokenId> prompt,
                                                         std::uint32_t output_tokens) {
  const std::vector<std::uint64_t> hashes = hash_full_blocks(prompt);
  const std::size_t reusable = prompt.empty() ? 0 : (prompt.size() - 1) / block_size_;

  Allocation result;
  std::uint32_t hits_in_eviction_order = 0;
  for (std::size_t i = 0; i < reusable; ++i) {
    const auto found = by_hash_.find(hashes[i]);
    if (found == by_hash_.end()) break;
    result.blocks.push_back(found->second);
    if (blocks_[found->second].references == 0) ++hits_in_eviction_order;
  }
  const auto hits = static_cast<std::uint32_t>(result.blocks.size());
  const std::uint32_t needed = blocks_for(prompt.size() + output_tokens);
  if (needed - hits > available() - hits_in_eviction_order) return std::nullopt;

  result.cached_tokens = hits * block_size_;
  for (const BlockId block : result.blocks) hold(block);
  for (std::size_t i = hits; i < needed; ++i) {
    const BlockId block = take_unused();
    const std::size_t begin = std::min(i * block_size_, prompt.size());
    const std::size_t count = std::min<std::size_t>(block_size_, prompt.size() - begin);
    fill(block, prompt.subspan(begin, count),
         i < hashes.size() ? std::optional(hashes[i]) : std::nullopt);
    result.blocks.push_back(block);
  }
  return result;
}

void BlockPool::release(std::span<const BlockId> blocks) {
  // Last block first: the tail of a prefix is worth less than its head and is evicted earlier.
  for (const BlockId id : blocks | std::views::reverse) {
    Block& block = blocks_[id];
    if (--block.references > 0) continue;
    if (block.hash) {
      block.position = eviction_order_.insert(eviction_order_.end(), id);
    } else {
      free_.push_back(id);
    }
  }
}

std::vector<std::uint64_t> BlockPool::hash_full_blocks(std::span<const TokenId> prompt) const {
  std::vector<std::uint64_t> hashes;
  std::uint64_t parent = 0;
  for (std::size_t begin = 0; begin + block_size_ <= prompt.size(); begin += block_size_) {
    parent = (parent ^ hash_prompt(prompt.subspan(begin, block_size_))) * 0x9E3779B97F4A7C15U;
    parent ^= parent >> 29;
    hashes.push_back(parent);
  }
  return hashes;
}

void BlockPool::hold(BlockId id) {
  Block& block = blocks_[id];
  if (block.references++ == 0) eviction_order_.erase(block.position);
}

BlockId BlockPool::take_unused() {
  BlockId id;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else {
    id = eviction_order_.front();
    eviction_order_.pop_front();
    by_hash_.erase(*blocks_[id].hash);
  }
  blocks_[id].references = 1;
  return id;
}

void BlockPool::fill(BlockId id, std::span<const TokenId> tokens,
                     std::optional<std::uint64_t> hash) {
  Block& block = blocks_[id];
  block.tokens.assign(tokens.begin(), tokens.end());
  // Two sequences may compute the same block at once; the first copy serves the cache.
  block.hash = hash && by_hash_.try_emplace(*hash, id).second ? hash : std::nullopt;
}

}  // namespace baton::sim
