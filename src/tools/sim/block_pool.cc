// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/block_pool.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace baton::sim {

BlockPool::BlockPool(std::uint32_t blocks, std::uint32_t block_size, PoolSettings settings)
    : block_size_(block_size),
      hasher_(std::move(settings.hasher)),
      caching_(settings.caching),
      recording_(settings.recording),
      blocks_(blocks),
      host_(settings.host_blocks) {
  free_.reserve(blocks);
  for (std::uint32_t id = blocks; id > 0; --id) free_.push_back(id - 1);
}

std::uint32_t BlockPool::blocks_for(std::size_t tokens) const {
  return static_cast<std::uint32_t>((tokens + block_size_ - 1) / block_size_);
}

std::optional<BlockPool::Allocation> BlockPool::reserve(std::span<const TokenId> prompt,
                                                        std::uint32_t output_tokens,
                                                        const CacheScope& scope) {
  const std::vector<BlockHash>& hashes = hash_full_blocks(prompt, scope);
  const std::size_t reusable = prompt.empty() ? 0 : (prompt.size() - 1) / block_size_;
  const auto searched = std::min(reusable, hashes.size());

  Allocation result;
  std::uint32_t hits_in_eviction_order = 0;
  for (std::size_t i = 0; i < searched; ++i) {
    const auto found = by_key_.find(hasher_.key(hashes[i], scope));
    if (found == by_key_.end()) break;
    result.blocks.push_back(found->second);
    if (blocks_[found->second].references == 0) ++hits_in_eviction_order;
  }
  const auto hits = static_cast<std::uint32_t>(result.blocks.size());
  const std::uint32_t needed = blocks_for(prompt.size() + output_tokens);
  if (needed - hits > available() - hits_in_eviction_order) return std::nullopt;

  std::size_t on_host = hits;
  while (on_host < searched && host_.contains(hasher_.key(hashes[on_host], scope))) ++on_host;
  for (std::size_t i = on_host; i > hits; --i) host_.touch(hasher_.key(hashes[i - 1], scope));

  result.cached_tokens = static_cast<std::uint32_t>(on_host) * block_size_;
  result.scope = scope;
  result.tokens = std::size_t{hits} * block_size_;
  if (hits > 0) result.last_full = hashes[hits - 1];
  result.prompt_hashes = hashes;
  for (const BlockId block : result.blocks) hold(block);
  // All room is made before anything is stored, so that the prompt's blocks are told of as one.
  while (result.blocks.size() < needed) result.blocks.push_back(take_unused());
  return result;
}

std::optional<BlockPool::Allocation> BlockPool::allocate(std::span<const TokenId> prompt,
                                                         std::uint32_t output_tokens,
                                                         const CacheScope& scope) {
  auto result = reserve(prompt, output_tokens, scope);
  if (result) append(*result, prompt.subspan(result->tokens));
  return result;
}

void BlockPool::append(Allocation& allocation, std::span<const TokenId> tokens) {
  run_open_ = false;
  for (const TokenId token : tokens) {
    const std::size_t index = allocation.tokens++ / block_size_;
    std::vector<TokenId>& content = blocks_[allocation.blocks[index]].tokens;
    content.push_back(token);
    if (content.size() < block_size_ || !caching_) continue;
    const BlockHash hash = index < allocation.prompt_hashes.size()
                               ? allocation.prompt_hashes[index]
                               : hasher_.next(allocation.last_full, content, allocation.scope);
    cache(allocation, index, hash);
    allocation.last_full = hash;
  }
}

void BlockPool::cache_partial(Allocation& allocation) {
  const std::size_t index = allocation.tokens / block_size_;
  if (!caching_ || allocation.tokens % block_size_ == 0) return;
  run_open_ = false;
  const std::vector<TokenId>& content = blocks_[allocation.blocks[index]].tokens;
  cache(allocation, index, hasher_.next(allocation.last_full, content, allocation.scope));
}

void BlockPool::release(std::span<const BlockId> blocks) {
  // Last block first: the tail of a prefix is worth less than its head and is evicted earlier.
  for (const BlockId id : blocks | std::views::reverse) {
    Block& block = blocks_[id];
    if (--block.references > 0) continue;
    if (block.name) {
      block.position = eviction_order_.insert(eviction_order_.end(), id);
    } else {
      free_.push_back(id);
    }
  }
}

void BlockPool::clear() {
  for (const auto& [key, id] : by_key_) blocks_[id].name.reset();
  by_key_.clear();
  free_.insert(free_.end(), eviction_order_.begin(), eviction_order_.end());
  eviction_order_.clear();
  host_.clear();
  if (recording_) changes_.emplace_back(CacheCleared{});
  run_open_ = false;
}

void BlockPool::forget(const BlockHash& hash, const CacheScope& scope) {
  const auto found = by_key_.find(hasher_.key(hash, scope));
  if (found == by_key_.end()) return;
  Block& block = blocks_[found->second];
  block.name.reset();
  if (block.references == 0) {
    eviction_order_.erase(block.position);
    free_.push_back(found->second);
  }
  by_key_.erase(found);
}

std::vector<BlockChange> BlockPool::take_changes() {
  run_open_ = false;
  return std::exchange(changes_, {});
}

std::vector<CachedBlock> BlockPool::table() const {
  std::vector<CachedBlock> out;
  out.reserve(by_key_.size() + host_.blocks().size());
  for (const auto& [key, id] : by_key_) out.push_back(cached_block(blocks_[id]));
  for (const auto& [key, block] : host_.blocks()) out.push_back(block);
  return out;
}

const std::vector<BlockHash>& BlockPool::hash_full_blocks(std::span<const TokenId> prompt,
                                                          const CacheScope& scope) {
  if (hashed_.scope == scope && std::ranges::equal(hashed_.prompt, prompt)) return hashed_.hashes;
  hashed_.prompt.assign(prompt.begin(), prompt.end());
  hashed_.scope = scope;
  hashed_.hashes.clear();
  if (!caching_) return hashed_.hashes;
  std::optional<BlockHash> parent;
  for (std::size_t begin = 0; begin + block_size_ <= prompt.size(); begin += block_size_) {
    parent = hasher_.next(parent, prompt.subspan(begin, block_size_), scope);
    hashed_.hashes.push_back(*parent);
  }
  return hashed_.hashes;
}

CachedBlock BlockPool::cached_block(const Block& block) const {
  return {.hash = block.name->hash,
          .parent = block.name->parent,
          .tokens = block.tokens,
          .scope = block.name->scope};
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
    evict(id);
  }
  blocks_[id].references = 1;
  blocks_[id].tokens.clear();
  return id;
}

void BlockPool::evict(BlockId id) {
  Block& block = blocks_[id];
  const std::uint64_t key = key_of(*block.name);
  by_key_.erase(key);
  tell_removed(block.name->hash, Tier::Device);
  if (host_.capacity() > 0 && block.tokens.size() == block_size_) {
    const HostTier::Outcome outcome = host_.put(key, cached_block(block));
    if (outcome.evicted) tell_removed(outcome.evicted->hash, Tier::Host);
    run_open_ = false;
    if (outcome.stored) tell_stored(host_.blocks().back().second);
    run_open_ = false;
  }
  block.name.reset();
}

// The block at `index` of the sequence can be found from now on, if the one before it can. One that
// the cache has already takes its place.
void BlockPool::cache(Allocation& allocation, std::size_t index, const BlockHash& hash) {
  if (index > 0 && !blocks_[allocation.blocks[index - 1]].name) return;
  BlockId& id = allocation.blocks[index];
  Name name{.hash = hash,
            .parent = index > 0 ? std::optional(blocks_[allocation.blocks[index - 1]].name->hash)
                                : std::nullopt,
            .scope = allocation.scope};
  const auto [found, added] = by_key_.try_emplace(key_of(name), id);
  if (!added) {
    blocks_[id].references = 0;
    free_.push_back(id);
    id = found->second;
    hold(id);
    return;
  }
  blocks_[id].name = std::move(name);
  if (recording_) tell_stored(cached_block(blocks_[id]));
}

void BlockPool::tell_stored(const CachedBlock& block) {
  if (!recording_) return;
  if (run_open_) {
    auto& run = std::get<BlocksStored>(changes_.back());
    if (run.hashes.back() == block.parent) {
      run.hashes.push_back(block.hash);
      run.tokens.insert(run.tokens.end(), block.tokens.begin(), block.tokens.end());
      return;
    }
  }
  changes_.emplace_back(BlocksStored{.parent = block.parent,
                                     .hashes = {block.hash},
                                     .tokens = block.tokens,
                                     .scope = block.scope,
                                     .tier = block.tier});
  run_open_ = true;
}

void BlockPool::tell_removed(const BlockHash& hash, Tier tier) {
  if (!recording_) return;
  changes_.emplace_back(BlockRemoved{.hash = hash, .tier = tier});
  run_open_ = false;
}

}  // namespace baton::sim
