// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "kvcache/index/index.h"
#include "kvcache/index/snapshot.h"
#include "unit/kvcache/index/index_model.h"

#include <algorithm>
#include <array>
#include <vector>

namespace {

using namespace baton;
using namespace baton::kvcache;
using fuzz::require;

constexpr std::size_t kMost = 200;

// Operations, a byte or a few for each, done by the index and by its model.
class Player {
 public:
  explicit Player(std::string_view script) : script_(script) {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) join(i);
  }

  void play() {
    while (!script_.empty()) step();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) compare_list(i);
    for (const Slot slot : slots_) index_.leave(slot);
    require(index_.size().blocks == 0, "nothing is held when all have left");
  }

 private:
  std::uint32_t next() {
    if (script_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(script_.front());
    script_.remove_prefix(1);
    return byte;
  }

  void join(std::uint32_t at) {
    const Holder holder{.worker = {++joined_}, .rank = at};
    slots_[at] = index_.join(holder);
    model_.join(slots_[at], holder);
  }

  void step() {
    const std::uint32_t what = next();
    const std::uint32_t at = what >> 6;
    const Slot slot = slots_[at];
    const auto tier = static_cast<Tier>(what >> 4 & 3);
    switch (what & 15) {
      case 0:
        index_.clear(slot);
        model_.clear(slot);
        break;
      case 1:
        index_.leave(slot);
        model_.leave(slot);
        join(at);
        break;
      case 2:
      case 3:
      case 4:
      case 5: {
        const auto names = some_names();
        require(index_.remove(slot, names, tier) == model_.remove(slot, names, tier),
                "a removal tells what it did");
        break;
      }
      case 6: {
        const auto names = some_names();
        require(index_.copy(slot, names, tier) == model_.copy(slot, names, tier),
                "a copy tells what it did");
        break;
      }
      case 7:
      case 8:
        compare_match();
        break;
      default: {
        std::optional<EngineHash> parent;
        if ((what & 1) != 0) parent = next() % 64;
        std::vector<NewBlock> blocks(1 + next() % 40);
        for (NewBlock& block : blocks) {
          const std::uint32_t byte = next();
          block = {.engine = byte % 64, .block = 1 + byte / 128};
        }
        require(
            index_.store(slot, parent, blocks, tier) == model_.store(slot, parent, blocks, tier),
            "a store tells what it did");
        require(index_.holding(slot).blocks == model_.holding(slot), "what is held is counted");
        require(index_.size().blocks == model_.blocks(), "blocks are counted");
        require(index_.size().memberships == model_.memberships(), "memberships are counted");
      }
    }
  }

  std::vector<EngineHash> some_names() {
    std::vector<EngineHash> names(next() % 8);
    for (EngineHash& name : names) name = next() % 64;
    return names;
  }

  void compare_match() {
    std::vector<SequenceHash> prompt;
    const std::uint32_t count = next() % 80;
    for (std::uint32_t i = 0; i < count; ++i) {
      const BlockHash block = 1 + next() / 128;
      prompt.push_back(prompt.empty() ? first_sequence(block)
                                      : next_sequence(prompt.back(), block));
    }
    std::vector<Match> matches;
    index_.match(prompt, matches);
    std::ranges::sort(matches, {}, &Match::holder);
    require(matches == model_.match(prompt), "a match is that of the model");
  }

  void compare_list(std::uint32_t at) {
    const auto listed = list_blocks(index_.list(slots_[at]));
    require(listed.size() == model_.list(slots_[at]).size(), "all that is held is listed");
    for (const Index::Held& held : listed) {
      const auto& block = model_.list(slots_[at]).at(held.engine);
      require(held.sequence == block.sequence && held.tiers == block.tiers, "and as it is");
    }
  }

  std::string_view script_;
  Index index_{{.blocks = kMost}};
  IndexModel model_{kMost};
  std::array<Slot, 4> slots_{};
  std::uint64_t joined_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Player(std::string_view(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 2000)))
      .play();
  return 0;
}
