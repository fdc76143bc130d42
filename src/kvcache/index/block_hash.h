// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace baton::kvcache {

using TokenId = std::uint32_t;
// Hashes of one block's tokens alone, and of a prefix up to and with a block. They equal NVIDIA
// Dynamo's, so that its published hashes can be compared.
using BlockHash = std::uint64_t;
using SequenceHash = std::uint64_t;

// Sets apart blocks of equal tokens.
struct Namespace {
  std::string_view lora = {};  // the adapter's name; empty: the base model
  std::string_view salt = {};  // cache_salt; empty: none
};

std::uint64_t seed_of(const Namespace& name_space);

// `multimodal`: the hashes of the images and the like that the block's tokens stand for, in any
// order.
BlockHash hash_block(std::span<const TokenId> tokens, std::uint64_t seed,
                     std::span<const std::uint64_t> multimodal = {});
// The first block's prefix is the block.
inline SequenceHash first_sequence(BlockHash block) { return block; }
SequenceHash next_sequence(SequenceHash before, BlockHash block);

// How a model's blocks are cut out of its tokens.
struct BlockShape {
  std::uint32_t size = 0;  // tokens in a block
  // SGLang's EAGLE: a block of pairs of neighbours, so it spans a token more, which is the next
  // one's first.
  bool bigram = false;
  bool operator==(const BlockShape&) const = default;
};

// One hash for every complete block; the rest does not count. Requires: shape.size > 0.
std::vector<SequenceHash> sequence_hashes(std::span<const TokenId> tokens, BlockShape shape,
                                          std::uint64_t seed);

}  // namespace baton::kvcache
