// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "kvcache/index/snapshot.h"

#define XXH_INLINE_ALL
#include <string>
#include <xxhash.h>

namespace {

using namespace baton;
using namespace baton::kvcache;

void check(std::string_view bytes) {
  const auto holders = decode_snapshot(bytes);
  if (!holders) {
    fuzz::require(!holders.error().message().empty(), "a refusal has its reason");
    return;
  }
  const auto again = decode_snapshot(encode_snapshot(*holders));
  fuzz::require(again && *again == *holders, "what is written is read as it was");
  for (const HolderSnapshot& holder : *holders) {
    Index index({.blocks = 1000});
    const Slot slot = index.join({.worker = {1}, .rank = holder.rank});
    restore_blocks(index, slot, holder.blocks);
    index.leave(slot);
    fuzz::require(index.size().blocks == 0, "whatever was restored can be removed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // With a checksum that is right, so that what lies behind it is reached.
  std::string whole("batonkvi\x01\0\0\0", 12);
  whole += bytes;
  const std::uint64_t sum = XXH3_64bits(whole.data(), whole.size());
  whole.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  check(whole);
  return 0;
}
