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

// The position up to which a holder's events had been applied; its readers interpret it.
struct FeedPosition {
  std::uint64_t sequence = 0;
  std::uint64_t payload_hash = 0;
  bool operator==(const FeedPosition&) const = default;
};

// The blocks of one holder, by a name that outlives the process.
struct HolderSnapshot {
  std::string worker;
  std::uint32_t rank = 0;
  FeedPosition position;
  BlockShape shape;                 // of all its blocks
  std::vector<Index::Held> blocks;  // each after its parent
  bool operator==(const HolderSnapshot&) const = default;
};

std::vector<Index::Held> list_blocks(const Index::Listing& listing);
// Restores the output of list_blocks(). Skips, and counts as unknown_parent, blocks whose parent
// had gone, and those after them.
Applied restore_blocks(Index& index, Slot slot, std::span<const Index::Held> blocks);

// To bytes, with a version and a checksum; and back. Undecodable bytes are refused as a whole, with
// the reason.
std::string encode_snapshot(std::span<const HolderSnapshot> holders);
Result<std::vector<HolderSnapshot>> decode_snapshot(std::string_view bytes);

}  // namespace baton::kvcache
