// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/load_ledger.h"

#include "unit/scheduling/policy/chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::scheduling {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using Entry = LoadLedger::Entry;
using Shared = std::vector<std::pair<RankKey, std::uint32_t>>;

constexpr Time kLedgerStart{1h};
constexpr RankKey kFirstKey{{1}, 0};
constexpr RankKey kSecondKey{{2}, 0};

// A ledger and the loads of a few ranks.
struct LoadLedgerTest : testing::Test {
  Entry book(LegLoad what, Time now = kLedgerStart) {
    return ledger->book(kFirstKey, first, std::move(what), now);
  }
  Entry book_second(LegLoad what) {
    return ledger->book(kSecondKey, second, std::move(what), kLedgerStart);
  }
  Shared shared(const BlockChain& chain) const {
    Shared found{{RankKey{{99}, 9}, 9}};  // what was there before is not to stay
    ledger->shared(*chain, found);
    return found;
  }

  std::shared_ptr<LoadLedger> ledger = std::make_shared<LoadLedger>();
  std::shared_ptr<RankLoad> first = std::make_shared<RankLoad>();
  std::shared_ptr<RankLoad> second = std::make_shared<RankLoad>();
};

void expect_nothing(const RankLoad& load) {
  EXPECT_EQ(load.requests(), 0);
  EXPECT_EQ(load.prefill_tokens(), 0);
  EXPECT_EQ(load.prefill_tokens(kLedgerStart), 0);
  EXPECT_EQ(load.prefill_seconds(kLedgerStart), 0);
  EXPECT_EQ(load.decode_blocks(), 0);
}

TEST_F(LoadLedgerTest, AddsWhatIsBookedAndTakesItAwayAtTheEnd) {
  expect_nothing(*first);
  Entry entry = book({.prefill_tokens = 100, .chain = chain_of({1, 2, 3}), .blocks = 5});
  EXPECT_TRUE(entry);
  EXPECT_EQ(first->requests(), 1);
  EXPECT_EQ(first->prefill_tokens(), 100);
  EXPECT_EQ(first->prefill_tokens(kLedgerStart + 1h), 100);  // not modelled
  EXPECT_EQ(first->prefill_seconds(kLedgerStart), 0);
  EXPECT_EQ(first->decode_blocks(), 5);
  EXPECT_EQ(ledger->tracked_blocks(), 3U);
  entry.prefill_completed(kLedgerStart + 1s);
  EXPECT_EQ(first->requests(), 1);
  EXPECT_EQ(first->prefill_tokens(), 0);
  EXPECT_EQ(first->decode_blocks(), 5);
  entry.free(kLedgerStart + 2s);
  EXPECT_FALSE(entry);
  expect_nothing(*first);
  EXPECT_EQ(ledger->tracked_blocks(), 0U);
}

TEST_F(LoadLedgerTest, DoesEachThingOnce) {
  const Entry other = book({.prefill_tokens = 7, .blocks = 1});
  Entry entry = book({.prefill_tokens = 100, .chain = chain_of({1}), .blocks = 1});
  entry.prefill_completed(kLedgerStart);
  entry.prefill_completed(kLedgerStart);
  EXPECT_EQ(first->prefill_tokens(), 7);
  entry.free(kLedgerStart);
  entry.free(kLedgerStart);
  entry.prefill_completed(kLedgerStart);
  entry.produced(1000);
  EXPECT_EQ(first->requests(), 1);
  EXPECT_EQ(first->prefill_tokens(), 7);
  EXPECT_EQ(first->decode_blocks(), 1);
}

TEST_F(LoadLedgerTest, EndsThePrefillOfWhatIsFreed) {
  Entry entry = book({.prefill_tokens = 100, .prefill_time = 1s});
  entry.free(kLedgerStart);
  expect_nothing(*first);
}

TEST_F(LoadLedgerTest, FreesWhenTheEntryGoes) {
  {
    const Entry entry = book({.prefill_tokens = 100, .chain = chain_of({1, 2}), .blocks = 2});
  }
  expect_nothing(*first);
  EXPECT_EQ(ledger->tracked_blocks(), 0U);
}

TEST_F(LoadLedgerTest, MovesWithTheEntry) {
  Entry entry = book({.prefill_tokens = 100, .chain = chain_of({1, 2}), .blocks = 2});
  Entry moved = std::move(entry);
  EXPECT_FALSE(entry);  // NOLINT(bugprone-use-after-move): that is asked here
  entry.free(kLedgerStart);
  EXPECT_EQ(first->requests(), 1);
  // What was booked in the place it moves to ends.
  Entry other = book_second({.blocks = 3});
  other = std::move(moved);
  expect_nothing(*second);
  EXPECT_EQ(first->requests(), 1);
  Entry& self = other;
  other = std::move(self);
  EXPECT_EQ(first->requests(), 1);
  other = Entry();
  expect_nothing(*first);
}

TEST_F(LoadLedgerTest, AnEmptyEntryDoesNothing) {
  Entry entry;
  EXPECT_FALSE(entry);
  entry.prefill_completed(kLedgerStart);
  entry.produced(100);
  entry.free(kLedgerStart);
}

TEST_F(LoadLedgerTest, EntriesOutliveWhoeverMadeTheLedger) {
  Entry entry = book({.prefill_tokens = 1, .chain = chain_of({1, 2}), .blocks = 2});
  Entry other = book_second({.chain = chain_of({1}), .blocks = 1});
  const std::weak_ptr<LoadLedger> watched = ledger;
  const std::weak_ptr<RankLoad> watched_load = second;
  ledger.reset();
  second.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_FALSE(watched_load.expired());
  other.free(kLedgerStart);
  entry.free(kLedgerStart);
  expect_nothing(*first);
  EXPECT_TRUE(watched.expired());
  EXPECT_TRUE(watched_load.expired());
}

TEST_F(LoadLedgerTest, CountsEqualBeginningsOncePerRank) {
  Entry shorter = book({.chain = chain_of({1, 2, 3}), .blocks = 4});
  const Entry longer = book({.chain = chain_of({1, 2, 3, 4}), .blocks = 4});
  EXPECT_EQ(first->decode_blocks(), 5);
  const Entry elsewhere = book_second({.chain = chain_of({1, 2}), .blocks = 2});
  EXPECT_EQ(second->decode_blocks(), 2);
  shorter.free(kLedgerStart);
  EXPECT_EQ(first->decode_blocks(), 4);
}

TEST_F(LoadLedgerTest, SharesNothingWithoutAChain) {
  const Entry one = book({.blocks = 4});
  const Entry other = book({.blocks = 4});
  const Entry empty = book({.chain = chain_of({}), .blocks = 1});
  EXPECT_EQ(first->decode_blocks(), 9);
  EXPECT_EQ(ledger->tracked_blocks(), 0U);
  EXPECT_THAT(shared(chain_of({1})), IsEmpty());
}

TEST_F(LoadLedgerTest, TakesAChainAsItIsWhereItIsLongerThanThePromptIsSaidToBe) {
  const Entry entry = book({.chain = chain_of({1, 2, 3}), .blocks = 1});
  EXPECT_EQ(first->decode_blocks(), 3);
}

TEST_F(LoadLedgerTest, TellsWhatIsActiveWhere) {
  const Entry one = book({.chain = chain_of({1, 2, 3}), .blocks = 3});
  Entry other = book_second({.chain = chain_of({1, 5}), .blocks = 2});
  EXPECT_THAT(shared(chain_of({1, 2, 3, 4})),
              UnorderedElementsAre(Pair(kFirstKey, 3), Pair(kSecondKey, 1)));
  EXPECT_THAT(shared(chain_of({8})), IsEmpty());
  other.free(kLedgerStart);
  EXPECT_THAT(shared(chain_of({1, 2})), UnorderedElementsAre(Pair(kFirstKey, 2)));
}

TEST_F(LoadLedgerTest, DecaysModelledPrefill) {
  Entry entry = book({.prefill_tokens = 100, .prefill_time = 10s});
  EXPECT_DOUBLE_EQ(first->prefill_tokens(kLedgerStart + 4s), 60);
  EXPECT_DOUBLE_EQ(first->prefill_seconds(kLedgerStart + 4s), 6);
  const Entry next = book({.prefill_tokens = 50, .prefill_time = 5s}, kLedgerStart + 4s);
  EXPECT_DOUBLE_EQ(first->prefill_tokens(kLedgerStart + 4s), 110);
  entry.prefill_completed(kLedgerStart + 5s);
  EXPECT_DOUBLE_EQ(first->prefill_tokens(kLedgerStart + 6s), 40);
}

TEST_F(LoadLedgerTest, TakesPrefillOfNoTokensAsNone) {
  const Entry entry = book({.prefill_tokens = 0, .prefill_time = 10s});
  EXPECT_EQ(first->prefill_seconds(kLedgerStart), 0);
}

TEST_F(LoadLedgerTest, CountsFullBlocksOfOutput) {
  Entry entry = book({.blocks = 3, .block_size = 16, .track_output = true});
  entry.produced(15);
  EXPECT_EQ(first->decode_blocks(), 3);
  entry.produced(16);
  EXPECT_EQ(first->decode_blocks(), 4);
  entry.produced(16 * 5 + 3);  // several at once
  EXPECT_EQ(first->decode_blocks(), 8);
  entry.produced(16);  // an older word
  EXPECT_EQ(first->decode_blocks(), 8);
  entry.free(kLedgerStart);
  expect_nothing(*first);
}

TEST_F(LoadLedgerTest, DoesNotCountOutputThatIsNotTracked) {
  Entry entry = book({.chain = chain_of({1}), .blocks = 3, .expected_output = 100});
  entry.produced(90);
  EXPECT_EQ(first->decode_blocks(), 3);
}

TEST_F(LoadLedgerTest, WeighsLessNearTheExpectedEnd) {
  Entry entry = book({.chain = chain_of({1, 2, 3, 4}),
                      .blocks = 5,
                      .block_size = 10,
                      .expected_output = 100,
                      .track_output = true});
  Entry other = book({.chain = chain_of({1, 2, 9}), .blocks = 3});
  entry.produced(9);
  EXPECT_EQ(first->decode_blocks(), 6);
  entry.produced(25);
  // Blocks 1 and 2 are shared, 9 is another's; 3, 4, the last one and two of output weigh 0.75.
  EXPECT_NEAR(first->decode_blocks(), 3 + 5 * 0.75, 1e-6);
  entry.produced(29);  // no boundary
  EXPECT_NEAR(first->decode_blocks(), 3 + 5 * 0.75, 1e-6);
  entry.produced(50);
  EXPECT_NEAR(first->decode_blocks(), 3 + 8 * 0.5, 1e-6);
  other.free(kLedgerStart);
  EXPECT_NEAR(first->decode_blocks(), 10 * 0.5, 1e-6);
  entry.produced(150);
  EXPECT_EQ(first->decode_blocks(), 0);  // more than expected: it may end any moment
  entry.free(kLedgerStart);
  expect_nothing(*first);
}

TEST_F(LoadLedgerTest, TakesAnOutputExpectedToBeEmptyAsOver) {
  Entry entry = book({.blocks = 4, .expected_output = 0, .track_output = true});
  EXPECT_EQ(first->decode_blocks(), 4);
  entry.produced(16);
  EXPECT_EQ(first->decode_blocks(), 0);
}

TEST_F(LoadLedgerTest, ABlockSizeOfZeroIsOne) {
  Entry entry = book({.blocks = 1, .block_size = 0, .track_output = true});
  entry.produced(2);
  EXPECT_EQ(first->decode_blocks(), 3);
}

TEST(RankKeyHash, DistinguishesRanks) {
  std::unordered_set<std::size_t> hashes;
  std::array<int, 64> set_bits{};
  for (std::uint64_t worker = 0; worker < 1000; ++worker) {
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      const std::size_t hash = RankKeyHash{}(RankKey{{worker}, rank});
      hashes.insert(hash);
      for (std::size_t bit = 0; bit < 64; ++bit) set_bits[bit] += hash >> bit & 1;
    }
  }
  EXPECT_EQ(hashes.size(), 16'000U);
  for (const int count : set_bits) EXPECT_NEAR(count, 8000, 400);
}

// One booking as the recount knows it.
struct LiveBooking {
  std::size_t rank = 0;
  LegLoad what = {};
  Entry entry = {};
  std::uint64_t produced = 0;
  double weight = 1;
  bool in_prefill = true;
};

// Bookings at random, and what they should add up to.
class History {
 public:
  static constexpr std::size_t kRanks = 5;

  explicit History(std::uint64_t seed) : random_(seed) {}

  void step(LoadLedger& ledger, std::span<const std::shared_ptr<RankLoad>> loads,
            unsigned books_of_100 = 50) {
    now_ += std::chrono::milliseconds(random_() % 20);
    if (live_.empty() || (live_.size() < 60 && random_() % 100 < books_of_100)) {
      book(ledger, loads);
      return;
    }
    const std::size_t i = random_() % live_.size();
    LiveBooking& one = live_[i];
    switch (random_() % 4) {
      case 0:
        one.entry.prefill_completed(now_);
        one.in_prefill = false;
        break;
      case 1:
        produce(one);
        break;
      case 2:
        one.entry.free(now_);
        [[fallthrough]];
      default:
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  void clear() { live_.clear(); }
  BlockChain draw() { return draw_chain(random_, 40); }
  const std::vector<LiveBooking>& live() const { return live_; }

 private:
  void book(LoadLedger& ledger, std::span<const std::shared_ptr<RankLoad>> loads) {
    LiveBooking one{.rank = random_() % kRanks};
    one.what.prefill_tokens = random_() % 4 == 0 ? 0 : random_() % 1000;
    if (random_() % 2 == 0) one.what.prefill_time = std::chrono::milliseconds(random_() % 500);
    if (random_() % 6 != 0) one.what.chain = draw();
    one.what.blocks = (one.what.chain ? one.what.chain->size() : 0) + random_() % 3;
    one.what.block_size = 4;
    if (random_() % 2 == 0) one.what.expected_output = random_() % 100;
    one.what.track_output = random_() % 3 != 0;
    one.entry = ledger.book(RankKey{{one.rank}, 3}, loads[one.rank], one.what, now_);
    live_.push_back(std::move(one));
  }
  void produce(LiveBooking& one) {
    const std::uint64_t before = one.produced / one.what.block_size;
    one.produced += random_() % 20;
    one.entry.produced(one.produced);
    if (!one.what.expected_output || one.produced / one.what.block_size == before) return;
    one.weight = *one.what.expected_output <= one.produced
                     ? 0
                     : 1 - static_cast<double>(one.produced) /
                               static_cast<double>(*one.what.expected_output);
  }

  std::mt19937_64 random_;
  Time now_ = kLedgerStart;
  std::vector<LiveBooking> live_;
};

struct Sums {
  std::int64_t requests = 0;
  std::int64_t prefill_tokens = 0;
  double decode_blocks = 0;
};

std::vector<Sums> recount(const std::vector<const LiveBooking*>& bookings) {
  std::vector<Sums> sums(History::kRanks);
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<double>> holders;
  for (const LiveBooking* one : bookings) {
    Sums& rank = sums[one->rank];
    ++rank.requests;
    if (one->in_prefill) rank.prefill_tokens += static_cast<std::int64_t>(one->what.prefill_tokens);
    const double weight = one->what.track_output ? one->weight : 1;
    const std::uint64_t chained = one->what.chain ? one->what.chain->size() : 0;
    const std::uint64_t output = one->what.track_output ? one->produced / one->what.block_size : 0;
    rank.decode_blocks += static_cast<double>(one->what.blocks - chained + output) * weight;
    if (!one->what.chain) continue;
    for (const std::uint64_t hash : *one->what.chain) {
      holders[{one->rank, hash}].push_back(weight);
    }
  }
  for (const auto& [block, weights] : holders) {
    sums[block.first].decode_blocks += weights.size() == 1 ? weights[0] : 1;
  }
  return sums;
}

std::map<RankKey, std::uint32_t> recount_shared(const std::vector<const LiveBooking*>& bookings,
                                                const BlockChain& chain) {
  std::map<RankKey, std::uint32_t> most;
  for (const LiveBooking* one : bookings) {
    if (!one->what.chain) continue;
    const auto blocks = static_cast<std::uint32_t>(common_blocks(*one->what.chain, *chain));
    auto& known = most[RankKey{{one->rank}, 3}];
    known = std::max(known, blocks);
  }
  std::erase_if(most, [](const auto& one) { return one.second == 0; });
  return most;
}

struct LoadLedgerHistory : testing::Test {
  LoadLedgerHistory() {
    for (std::size_t i = 0; i < History::kRanks; ++i) loads.push_back(std::make_shared<RankLoad>());
  }
  void expect_equal(const std::vector<const LiveBooking*>& bookings) const {
    const std::vector<Sums> sums = recount(bookings);
    for (std::size_t rank = 0; rank < loads.size(); ++rank) {
      ASSERT_EQ(loads[rank]->requests(), sums[rank].requests);
      ASSERT_EQ(loads[rank]->prefill_tokens(), sums[rank].prefill_tokens);
      ASSERT_NEAR(loads[rank]->decode_blocks(), sums[rank].decode_blocks, 1e-5);
    }
  }
  void expect_equal_shared(const std::vector<const LiveBooking*>& bookings,
                           const BlockChain& chain) const {
    Shared found;
    ledger->shared(*chain, found);
    const std::map<RankKey, std::uint32_t> by_rank(found.begin(), found.end());
    ASSERT_EQ(by_rank.size(), found.size()) << "a rank is named twice";
    ASSERT_EQ(by_rank, recount_shared(bookings, chain));
  }
  void expect_all_gone() const {
    for (const auto& load : loads) expect_nothing(*load);
    EXPECT_EQ(ledger->tracked_blocks(), 0U);
  }

  std::shared_ptr<LoadLedger> ledger = std::make_shared<LoadLedger>();
  std::vector<std::shared_ptr<RankLoad>> loads;
};

std::vector<const LiveBooking*> bookings_of(std::span<const History> histories) {
  std::vector<const LiveBooking*> bookings;
  for (const History& history : histories) {
    for (const LiveBooking& one : history.live()) bookings.push_back(&one);
  }
  return bookings;
}

TEST_F(LoadLedgerHistory, EqualsARecountAfterEveryStep) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<History> histories;
    histories.emplace_back(seed);
    History& history = histories[0];
    for (int step = 0; step < 600; ++step) {
      history.step(*ledger, loads, step / 150 % 2 == 0 ? 55 : 35);
      const std::vector<const LiveBooking*> bookings = bookings_of(histories);
      ASSERT_NO_FATAL_FAILURE(expect_equal(bookings)) << seed << ", " << step;
      ASSERT_NO_FATAL_FAILURE(expect_equal_shared(bookings, history.draw()))
          << seed << ", " << step;
    }
    history.clear();
    expect_all_gone();
  }
}

TEST_F(LoadLedgerHistory, EqualsARecountAfterManyThreads) {
  constexpr std::size_t kThreads = 4;
  std::vector<History> histories;
  for (std::uint64_t seed = 10; seed < 10 + kThreads; ++seed) histories.emplace_back(seed);
  const auto on_all_threads = [&histories](auto work) {
    std::vector<std::thread> threads;
    for (History& history : histories) threads.emplace_back([&history, work] { work(history); });
    for (std::thread& thread : threads) thread.join();
  };
  for (int round = 0; round < 3; ++round) {
    on_all_threads([this](History& history) {
      Shared found;
      for (int step = 0; step < 2000; ++step) {
        history.step(*ledger, loads, 49);
        const BlockChain asked = history.draw();
        ledger->shared(*asked, found);
        for (const auto& [rank, blocks] : found) {
          if (blocks == 0 || blocks > asked->size()) ADD_FAILURE() << "an overlap of " << blocks;
        }
        const RankLoad& load = *loads[static_cast<std::size_t>(step) % loads.size()];
        if (load.prefill_tokens(kLedgerStart + 1s) < 0 ||
            load.prefill_seconds(kLedgerStart + 1s) < 0) {
          ADD_FAILURE() << "less than nothing to prefill";
        }
      }
    });
    const std::vector<const LiveBooking*> bookings = bookings_of(histories);
    ASSERT_GT(bookings.size(), 0U);
    ASSERT_NO_FATAL_FAILURE(expect_equal(bookings));
    for (int asked = 0; asked < 50; ++asked) {
      ASSERT_NO_FATAL_FAILURE(expect_equal_shared(bookings, histories[0].draw()));
    }
  }
  on_all_threads([](History& history) { history.clear(); });
  expect_all_gone();
}

}  // namespace
}  // namespace baton::scheduling
