// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/active_blocks.h"

#include "unit/scheduling/policy/chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace baton::scheduling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using Slot = ActiveBlocks::Slot;

std::vector<std::pair<Slot, std::size_t>> shared(const ActiveBlocks& active,
                                                 const BlockChain& chain) {
  std::vector<std::pair<Slot, std::size_t>> found;
  active.visit_shared(
      *chain, [&found](Slot slot, std::size_t blocks) { found.emplace_back(slot, blocks); });
  return found;
}

TEST(ActiveBlocks, FindsHowMuchOfAPromptEachRankHas) {
  ActiveBlocks active;
  auto* const first = active.add(1, chain_of({1, 2, 3, 4})).end;
  auto* const second = active.add(2, chain_of({1, 2, 5})).end;
  auto* const third = active.add(3, chain_of({6})).end;
  EXPECT_THAT(shared(active, chain_of({1, 2, 3, 7})), UnorderedElementsAre(Pair(1, 3), Pair(2, 2)));
  EXPECT_THAT(shared(active, chain_of({1, 2, 3, 4, 5})),
              UnorderedElementsAre(Pair(1, 4), Pair(2, 2)));
  EXPECT_THAT(shared(active, chain_of({1})), UnorderedElementsAre(Pair(1, 1), Pair(2, 1)));
  EXPECT_THAT(shared(active, chain_of({6, 1})), ElementsAre(Pair(3, 1)));
  EXPECT_THAT(shared(active, chain_of({7})), IsEmpty());
  EXPECT_THAT(shared(active, chain_of({})), IsEmpty());
  active.remove(1, first, kWholeBlock);
  EXPECT_THAT(shared(active, chain_of({1, 2, 3, 4})), ElementsAre(Pair(2, 2)));
  active.remove(2, second, kWholeBlock);
  active.remove(3, third, kWholeBlock);
  EXPECT_THAT(shared(active, chain_of({1})), IsEmpty());
}

TEST(ActiveBlocks, CountsABlockOncePerRank) {
  ActiveBlocks active;
  const auto first = active.add(1, chain_of({1, 2, 3}));
  EXPECT_EQ(first.change, 3 * kWholeBlock);
  const auto longer = active.add(1, chain_of({1, 2, 3, 4, 5}));
  EXPECT_EQ(longer.change, 2 * kWholeBlock);
  const auto elsewhere = active.add(2, chain_of({1, 2, 6}));
  EXPECT_EQ(elsewhere.change, 3 * kWholeBlock);
  EXPECT_EQ(active.blocks(), 6U);
  EXPECT_EQ(active.remove(1, first.end, kWholeBlock), 0);
  EXPECT_EQ(active.remove(1, longer.end, kWholeBlock), -5 * kWholeBlock);
  EXPECT_EQ(active.blocks(), 3U);
  EXPECT_EQ(active.remove(2, elsewhere.end, kWholeBlock), -3 * kWholeBlock);
  EXPECT_EQ(active.blocks(), 0U);
  EXPECT_EQ(active.runs(), 0U);
}

TEST(ActiveBlocks, WeighsLessOnlyWhatNoOtherPromptHas) {
  constexpr BlockWeight kHalfBlock = kWholeBlock / 2;
  ActiveBlocks active;
  const auto first = active.add(1, chain_of({1, 2, 3, 4}));
  const auto other = active.add(1, chain_of({1, 2, 5}));
  const auto elsewhere = active.add(2, chain_of({1, 2, 3, 4}));
  EXPECT_EQ(active.reweigh(1, first.end, kWholeBlock, kHalfBlock), -2 * kHalfBlock);  // 3 and 4
  // No prompt shares them now, so 1 and 2 weigh less too; and whole again with another prompt.
  EXPECT_EQ(active.remove(1, other.end, kWholeBlock), -kWholeBlock - 2 * kHalfBlock);
  const auto again = active.add(1, chain_of({1, 2, 3}));
  EXPECT_EQ(again.change, 3 * kHalfBlock);
  EXPECT_EQ(active.remove(1, first.end, kHalfBlock), -kHalfBlock);
  EXPECT_EQ(active.remove(1, again.end, kWholeBlock), -3 * kWholeBlock);
  EXPECT_EQ(active.remove(2, elsewhere.end, kWholeBlock), -4 * kWholeBlock);
}

TEST(ActiveBlocks, LetsTheChainOfAPromptGoThatHasEnded) {
  ActiveBlocks active;
  auto chain = chain_with(10, 1000, 1);
  const std::weak_ptr<const std::vector<std::uint64_t>> watched = chain;
  const auto first = active.add(1, std::move(chain));
  const auto second = active.add(2, chain_with(10, 20, 2));
  const auto third = active.add(2, chain_with(5, 20, 3));
  const auto fourth = active.add(2, chain_with(7, 7, 3));
  EXPECT_FALSE(watched.expired());
  active.remove(1, first.end, kWholeBlock);
  EXPECT_TRUE(watched.expired());
  EXPECT_THAT(shared(active, chain_with(10, 10, 0)), ElementsAre(Pair(2, 10)));
  for (const auto& added : {second, third, fourth}) active.remove(2, added.end, kWholeBlock);
  EXPECT_EQ(active.runs(), 0U);
}

TEST(ActiveBlocks, LetsTheChainOfAPromptGoThatOthersWentBeyond) {
  ActiveBlocks active;
  auto chain = chain_of({1, 2, 3, 4, 5, 6});
  const std::weak_ptr<const std::vector<std::uint64_t>> watched = chain;
  const auto middle = active.add(1, std::move(chain));
  const auto branch = active.add(1, chain_of({1, 2, 9}));
  const auto beyond = active.add(1, chain_of({1, 2, 3, 4, 5, 6, 7}));
  active.remove(1, middle.end, kWholeBlock);
  active.remove(1, beyond.end, kWholeBlock);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(active.blocks(), 3U);
  EXPECT_EQ(active.runs(), 1U);
  active.remove(1, branch.end, kWholeBlock);
}

TEST(ActiveBlocks, LetsTheChainsOfEqualPromptsGo) {
  ActiveBlocks active;
  auto chain = chain_of({1, 2, 3, 4});
  const std::weak_ptr<const std::vector<std::uint64_t>> watched = chain;
  const auto first = active.add(1, std::move(chain));
  const auto branch = active.add(1, chain_of({1, 2, 8}));
  const auto other = active.add(1, chain_of({1, 2, 9}));
  const auto equal = active.add(1, chain_of({1, 2, 3, 4}));
  active.remove(1, first.end, kWholeBlock);
  active.remove(1, equal.end, kWholeBlock);
  EXPECT_TRUE(watched.expired());
  active.remove(1, branch.end, kWholeBlock);
  active.remove(1, other.end, kWholeBlock);
}

TEST(ActiveBlocks, DoesNotFallToPieces) {
  ActiveBlocks active;
  const auto stays = active.add(0, chain_with(100, 100, 1));
  for (std::size_t common = 1; common < 100; ++common) {
    const auto passing = active.add(1, chain_with(common, 100, 2));
    EXPECT_EQ(active.runs(), 3U);
    active.remove(1, passing.end, kWholeBlock);
    EXPECT_EQ(active.runs(), 1U);
  }
  active.remove(0, stays.end, kWholeBlock);
}

TEST(ActiveBlocks, FindsThousandsOfRanks) {
  constexpr Slot kRanks = 4000;
  ActiveBlocks active;
  std::vector<ActiveBlocks::Run*> ends(kRanks);
  std::vector<Slot> order(kRanks);
  for (Slot slot = 0; slot < kRanks; ++slot) order[slot] = slot;
  std::mt19937_64 random{5};
  std::ranges::shuffle(order, random);
  for (const Slot slot : order) ends[slot] = active.add(slot, chain_with(100, 300, slot + 1)).end;
  const auto found = shared(active, chain_with(100, 300, 78));
  ASSERT_EQ(found.size(), kRanks);
  std::set<Slot> seen;
  for (const auto& [slot, blocks] : found) {
    seen.insert(slot);
    EXPECT_EQ(blocks, slot == 77 ? 300U : 100U);
  }
  EXPECT_EQ(seen.size(), kRanks);
  std::ranges::shuffle(order, random);
  for (const Slot slot : order) active.remove(slot, ends[slot], kWholeBlock);
  EXPECT_EQ(active.runs(), 0U);
}

// One prompt of the history below.
struct LivePrompt {
  Slot slot;
  BlockChain chain;
  ActiveBlocks::Run* end;
  BlockWeight weight;
};

// What each rank's blocks weigh, counted one by one.
std::map<Slot, BlockWeight> recount(const std::vector<LivePrompt>& prompts) {
  std::map<std::pair<Slot, std::uint64_t>, std::vector<BlockWeight>> holders;
  for (const LivePrompt& one : prompts) {
    for (const std::uint64_t hash : *one.chain) holders[{one.slot, hash}].push_back(one.weight);
  }
  std::map<Slot, BlockWeight> sums;
  for (const auto& [block, weights] : holders) {
    sums[block.first] += weights.size() == 1 ? weights[0] : kWholeBlock;
  }
  return sums;
}

std::map<Slot, std::size_t> recount_shared(const std::vector<LivePrompt>& prompts,
                                           const BlockChain& chain) {
  std::map<Slot, std::size_t> most;
  for (const LivePrompt& one : prompts) {
    const std::size_t blocks = common_blocks(*one.chain, *chain);
    if (blocks > 0) most[one.slot] = std::max(most[one.slot], blocks);
  }
  return most;
}

std::size_t different_blocks(const std::vector<LivePrompt>& prompts) {
  std::set<std::uint64_t> blocks;
  for (const LivePrompt& one : prompts) blocks.insert(one.chain->begin(), one.chain->end());
  return blocks.size();
}

TEST(ActiveBlocks, EqualsARecountAfterAnyHistory) {
  std::mt19937_64 random{20240607};
  for (const std::size_t longest : {std::size_t{3}, std::size_t{12}, std::size_t{60}}) {
    ActiveBlocks active;
    std::vector<LivePrompt> prompts;
    std::map<Slot, BlockWeight> sums;
    std::vector<std::weak_ptr<const std::vector<std::uint64_t>>> chains;
    for (int step = 0; step < 1500; ++step) {
      // Grows and shrinks in turns.
      const bool adds = random() % 100 < (step / 300 % 2 == 0 ? 55U : 40U);
      if (prompts.empty() || (adds && prompts.size() < 40)) {
        const Slot slot = static_cast<Slot>(random() % 5);
        const bool same = !prompts.empty() && random() % 10 == 0;
        const BlockChain chain =
            same ? prompts[random() % prompts.size()].chain : draw_chain(random, longest);
        if (!same) chains.push_back(chain);
        const auto added = active.add(slot, chain);
        sums[slot] += added.change;
        prompts.push_back({slot, chain, added.end, kWholeBlock});
      } else if (random() % 3 == 0) {
        LivePrompt& one = prompts[random() % prompts.size()];
        const auto weight = static_cast<BlockWeight>(random() % (kWholeBlock + 1));
        sums[one.slot] += active.reweigh(one.slot, one.end, one.weight, weight);
        one.weight = weight;
      } else {
        const std::size_t i = random() % prompts.size();
        sums[prompts[i].slot] += active.remove(prompts[i].slot, prompts[i].end, prompts[i].weight);
        prompts.erase(prompts.begin() + static_cast<std::ptrdiff_t>(i));
      }
      std::erase_if(sums, [](const auto& one) { return one.second == 0; });
      std::map<Slot, BlockWeight> expected = recount(prompts);
      std::erase_if(expected, [](const auto& one) { return one.second == 0; });
      ASSERT_EQ(sums, expected) << "step " << step;
      ASSERT_EQ(active.blocks(), different_blocks(prompts));
      ASSERT_LE(active.runs(), 2 * prompts.size());
      const BlockChain asked = random() % 3 == 0 && !prompts.empty()
                                   ? prompts[random() % prompts.size()].chain
                                   : draw_chain(random, longest);
      const auto found = shared(active, asked);
      const std::map<Slot, std::size_t> by_slot(found.begin(), found.end());
      ASSERT_EQ(by_slot.size(), found.size()) << "a rank is named twice";
      ASSERT_EQ(by_slot, recount_shared(prompts, asked)) << "step " << step;
      // A chain is kept for prompts that are as long and go the same way.
      std::erase_if(chains, [](const auto& chain) { return chain.expired(); });
      for (const auto& chain : chains) {
        const auto kept = chain.lock();
        ASSERT_TRUE(std::ranges::any_of(prompts,
                                        [&kept](const LivePrompt& one) {
                                          return common_blocks(*one.chain, *kept) == kept->size();
                                        }))
            << "step " << step;
      }
    }
    for (const LivePrompt& one : prompts)
      sums[one.slot] += active.remove(one.slot, one.end, one.weight);
    for (const auto& [slot, sum] : sums) EXPECT_EQ(sum, 0) << slot;
    EXPECT_EQ(active.blocks(), 0U);
    EXPECT_EQ(active.runs(), 0U);
  }
}

}  // namespace
}  // namespace baton::scheduling
