// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "kvcache/events/applier.h"
#include "kvcache/index/index.h"

#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  using fuzz::require;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  static kvcache::Index index({.blocks = 1000});  // to make one takes longer than all the rest
  const kvcache::Slot slot = index.join({.worker = {1}, .rank = 0});
  kvcache::Applier applier(index, slot, std::nullopt);
  for (int i = 0; i < 2; ++i) {
    const auto polled = applier.apply_trtllm(json, 0);
    require(polled || !polled.error().message().empty(), "a refusal says why");
    std::uint64_t held = 0;
    for (const std::size_t blocks : index.holding(slot).blocks) held += blocks;
    require(held <= applier.tally().stored, "nothing is held that was not stored");
    require(polled || held == 0, "an answer is refused before any of it is applied");
  }
  index.leave(slot);
  require(index.size().blocks == 0, "a slot leaves nothing behind");
  return 0;
}
