// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/snapshot.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <xxhash.h>

namespace baton::kvcache {
namespace {

// All numbers are little-endian.
//   magic 8 bytes · version u32 · holders u32
//   each holder: worker (u32 length, bytes) · rank u32 · sequence u64 · payload hash u64 ·
//                block size u32 · bigram u8 · blocks u32
//   each block:  engine u64 · sequence u64 · parent u32 (its place in the list) · flags u8
//   XXH3-64 of all before it
constexpr std::string_view kMagic = "batonkvi";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kNoParent = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint8_t kTierBits = (1U << kTiers) - 1;
constexpr std::uint8_t kFirst = 1U << kTiers;
constexpr std::size_t kHolderBytes = 4 + 4 + 8 + 8 + 4 + 1 + 4;  // at least
constexpr std::size_t kBlockBytes = 8 + 8 + 4 + 1;

static_assert(std::endian::native == std::endian::little);

template <class Number>
void put(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

auto refuse(std::string_view why) {
  return fail(
      Errc::Internal,
      fmt::format("the saved index cannot be used: {}; delete the file to start without it", why));
}

// Takes numbers from the front. Once it is short, nothing that it gave counts.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number take() {
    Number number{};
    if (rest_.size() < sizeof number) {
      short_ = true;
      return number;
    }
    std::memcpy(&number, rest_.data(), sizeof number);
    rest_.remove_prefix(sizeof number);
    return number;
  }
  std::string_view take_text(std::size_t size) {
    if (rest_.size() < size) {
      short_ = true;
      return {};
    }
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  std::size_t left() const { return rest_.size(); }
  bool is_short() const { return short_; }

 private:
  std::string_view rest_;
  bool short_ = false;
};

// Empty on success.
std::string_view read_blocks(Reader& reader, std::uint32_t count,
                             std::vector<Index::Held>& blocks) {
  blocks.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Index::Held held;
    held.engine = reader.take<std::uint64_t>();
    held.sequence = reader.take<std::uint64_t>();
    const auto parent = reader.take<std::uint32_t>();
    const auto flags = reader.take<std::uint8_t>();
    held.tiers = flags & kTierBits;
    held.first = (flags & kFirst) != 0;
    if (held.tiers == 0 || (flags & ~(kTierBits | kFirst)) != 0) return "a block is in no tier";
    if (parent != kNoParent) {
      if (parent >= i || held.first) return "a block comes before its parent";
      held.parent = blocks[parent].engine;
    }
    blocks.push_back(held);
  }
  return {};
}

}  // namespace

std::vector<Index::Held> list_blocks(const Index::Listing& listing) {
  std::vector<Index::Held> blocks;
  listing.visit([&](const Index::Held& held) { blocks.push_back(held); });
  return blocks;
}

Applied restore_blocks(Index& index, Slot slot, std::span<const Index::Held> blocks) {
  Applied all;
  std::vector<Index::Restored> run;
  while (!blocks.empty()) {
    const Index::Held& head = blocks.front();
    run.clear();
    std::size_t length = 0;
    do {
      const Index::Held& held = blocks[length++];
      run.push_back({.engine = held.engine, .sequence = held.sequence, .tiers = held.tiers});
    } while (length < blocks.size() && blocks[length].parent == run.back().engine);
    Applied applied{.unknown_parent = static_cast<std::uint32_t>(length)};
    if (head.first || head.parent) applied = index.restore(slot, head.parent, run);
    all.done += applied.done;
    all.known += applied.known;
    all.unknown_parent += applied.unknown_parent;
    all.no_room += applied.no_room;
    blocks = blocks.subspan(length);
  }
  return all;
}

std::string encode_snapshot(std::span<const HolderSnapshot> holders) {
  std::string out(kMagic);
  put(out, kVersion);
  put(out, static_cast<std::uint32_t>(holders.size()));
  for (const HolderSnapshot& holder : holders) {
    put(out, static_cast<std::uint32_t>(holder.worker.size()));
    out += holder.worker;
    put(out, holder.rank);
    put(out, holder.position.sequence);
    put(out, holder.position.payload_hash);
    put(out, holder.shape.size);
    put(out, static_cast<std::uint8_t>(holder.shape.bigram));
    put(out, static_cast<std::uint32_t>(holder.blocks.size()));
    std::unordered_map<EngineHash, std::uint32_t> places;
    for (std::size_t i = 0; i < holder.blocks.size(); ++i) {
      const Index::Held& held = holder.blocks[i];
      std::uint32_t parent = kNoParent;
      if (held.parent) parent = places.at(*held.parent);
      places.emplace(held.engine, static_cast<std::uint32_t>(i));
      put(out, held.engine);
      put(out, held.sequence);
      put(out, parent);
      put(out, static_cast<std::uint8_t>(held.tiers | (held.first ? kFirst : 0)));
    }
  }
  put(out, checksum(out));
  return out;
}

Result<std::vector<HolderSnapshot>> decode_snapshot(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return refuse("it is no saved index");
  if (bytes.size() < kMagic.size() + 4 + 4 + 8) return refuse("it is cut off");
  Reader reader(bytes.substr(kMagic.size()));
  const auto version = reader.take<std::uint32_t>();
  if (version != kVersion) {
    return refuse(fmt::format("it has version {} and this program reads {}", version, kVersion));
  }
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  if (sum != checksum(bytes.substr(0, bytes.size() - sizeof sum))) {
    return refuse("its checksum is wrong");
  }
  reader = Reader(bytes.substr(kMagic.size() + 4, bytes.size() - kMagic.size() - 4 - sizeof sum));
  const auto count = reader.take<std::uint32_t>();
  if (count > reader.left() / kHolderBytes) return refuse("it counts more holders than it has");
  std::vector<HolderSnapshot> holders;
  holders.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    HolderSnapshot& holder = holders.emplace_back();
    holder.worker = reader.take_text(reader.take<std::uint32_t>());
    holder.rank = reader.take<std::uint32_t>();
    holder.position.sequence = reader.take<std::uint64_t>();
    holder.position.payload_hash = reader.take<std::uint64_t>();
    holder.shape.size = reader.take<std::uint32_t>();
    const auto bigram = reader.take<std::uint8_t>();
    holder.shape.bigram = bigram == 1;
    const auto blocks = reader.take<std::uint32_t>();
    if (reader.is_short()) return refuse("a holder is cut off");
    if (holder.shape.size == 0 || bigram > 1) return refuse("a holder's blocks have no shape");
    if (blocks > reader.left() / kBlockBytes) return refuse("it counts more blocks than it has");
    const std::string_view wrong = read_blocks(reader, blocks, holder.blocks);
    if (!wrong.empty()) return refuse(wrong);
  }
  if (reader.left() > 0) return refuse("something follows its end");
  return holders;
}

}  // namespace baton::kvcache
