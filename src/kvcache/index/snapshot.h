// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvcache/index/index.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::kvcache {

// Up to where a holder's events had been taken in; whoever reads them knows what it means.
struct FeedPosition {
  std::uint64_t sequence = 0;
  std::uint64_t payload_hash = 0;
  bool operator==(const FeedPosition&) const = default;
};

// What one holder had, by a name that outlives the process.
struct HolderSnapshot {
  std::string worker;
  std::uint32_t rank = 0;
  FeedPosition position;
  BlockShape shape;                 // of all its blocks
  std::vector<Index::Held> blocks;  // each after its parent
  bool operator==(const HolderSnapshot&) const = default;
};

std::vector<Index::Held> list_blocks(const Index::Listing& listing);
// Puts back what list_blocks() gave. Left out, and counted as unknown_parent: blocks whose parent
// had gone, and what follows them.
Applied restore_blocks(Index& index, Slot slot, std::span<const Index::Held> blocks);

// As bytes, with a version and a checksum; and back. What does not decode is refused as a whole,
// with the reason.
std::string encode_snapshot(std::span<const HolderSnapshot> holders);
Result<std::vector<HolderSnapshot>> decode_snapshot(std::string_view bytes);

}  // namespace baton::kvcache
