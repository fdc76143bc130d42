// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/etcd_keys.h"

#include "unit/fleet/etcd_value.h"
#include "unit/fleet/fleet_fixture.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fleet {
namespace {

using etcd::Event;
using etcd::KeyValue;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr milliseconds kLinger{15'000};

KeyValue entry(std::string key, std::string text, std::int64_t lease = 0) {
  return {.key = std::move(key), .value = std::move(text), .lease = lease};
}
Event put(std::string key, std::string text, std::int64_t lease = 0) {
  return {Event::Kind::Put, entry(std::move(key), std::move(text), lease)};
}
Event erased(std::string key) { return {Event::Kind::Delete, entry(std::move(key), "")}; }

struct EtcdKeysTest : FleetTest {
  // The servers that get requests, in order.
  std::vector<std::string> serving() {
    std::vector<std::string> all;
    for (const Fleet::Member& one : fleet().members()) {
      if (!one.leaving) all.push_back(one.worker->authority());
    }
    return all;
  }
  Worker& at(std::string_view server) { return *fleet().find_worker(server); }
  std::size_t changes() const {
    std::size_t count = 0;
    for (auto at = lines.find("worker_changed"); at != lines.npos;
         at = lines.find("worker_changed", at + 1)) {
      ++count;
    }
    return count;
  }

  EtcdKeys keys{fleet(), kLinger, metrics, log};
};

TEST_F(EtcdKeysTest, AnnouncesWhatIsListed) {
  keys.replace({entry("/a", worker_value(1)), entry("/b", worker_value(2))}, false);
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1", "127.0.0.1:2"));
  EXPECT_EQ(keys.workers(), 2U);
}

TEST_F(EtcdKeysTest, TakesTheLastOfSeveralChangesOfAKey) {
  keys.apply({put("/a", worker_value(1)), put("/b", worker_value(2)), erased("/b"),
              put("/a", worker_value(3)), put("/c", worker_value(4)), erased("/c"),
              put("/c", worker_value(5))});
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:3", "127.0.0.1:5"));
}

TEST_F(EtcdKeysTest, ChangesOnlyWhatDiffersInAListing) {
  keys.replace({entry("/a", worker_value(1)), entry("/b", worker_value(2))}, false);
  const auto before = at("127.0.0.1:1").id();
  const std::size_t told = changes();
  keys.replace({entry("/a", worker_value(1)), entry("/b", worker_value(2))}, false);
  EXPECT_EQ(changes(), told);
  keys.replace({entry("/a", worker_value(1)), entry("/c", worker_value(3))}, false);
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1", "127.0.0.1:3"));
  EXPECT_EQ(at("127.0.0.1:1").id(), before);
}

// ---- values that cannot be read ----

TEST_F(EtcdKeysTest, RefusesOneValueAndTakesTheOthers) {
  keys.apply({put("/a", worker_value(1)), put("/bad", R"({"model":"m","urll":"x"})"),
              put("/c", worker_value(3))});
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1", "127.0.0.1:3"));
  EXPECT_THAT(lines, HasSubstr(R"("event":"etcd_entry_refused","key":"/bad","problem":")"));
  EXPECT_THAT(lines, HasSubstr("urll"));
  EXPECT_THAT(lines, HasSubstr(R"("value_before_holds":false)"));
  EXPECT_EQ(keys.refused(), 1U);
  keys.apply({erased("/bad")});
  EXPECT_EQ(keys.refused(), 0U);
}

TEST_F(EtcdKeysTest, KeepsTheGoodValueOfAKeyThatGetsABadOne) {
  keys.apply({put("/a", worker_value(1))});
  keys.apply({put("/a", "nonsense")});
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1"));
  EXPECT_THAT(lines, HasSubstr(R"("value_before_holds":true)"));
  keys.apply({put("/a", worker_value(1))});
  EXPECT_EQ(keys.refused(), 0U);
  keys.apply({put("/a", "nonsense"), erased("/a")});
  EXPECT_THAT(serving(), IsEmpty());
}

TEST_F(EtcdKeysTest, TellsOfARefusedValueOnce) {
  keys.replace({entry("/bad", "nonsense")}, false);
  const std::string told = lines;
  keys.replace({entry("/bad", "nonsense")}, false);
  EXPECT_EQ(lines, told);
  keys.replace({entry("/bad", "other nonsense")}, false);
  EXPECT_NE(lines, told);
  keys.replace({}, false);
  EXPECT_EQ(keys.refused(), 0U);
}

// ---- keys that go ----

TEST_F(EtcdKeysTest, LetsGoAtOnceOfWhoHadNoLease) {
  keys.apply({put("/a", worker_value(1))});
  keys.apply({erased("/a")});
  EXPECT_THAT(serving(), IsEmpty());
}

TEST_F(EtcdKeysTest, LetsGoAtOnceOfWhoWasDraining) {
  keys.apply({put("/a", worker_value(1), 7)});
  keys.apply({put("/a", worker_value(1, R"(,"draining":true)"), 7)});
  keys.apply({erased("/a")});
  EXPECT_THAT(serving(), IsEmpty());
  EXPECT_EQ(keys.unconfirmed(), 0U);
}

TEST_F(EtcdKeysTest, KeepsWhoMayHaveLostItsLeaseOnly) {
  keys.apply({put("/a", worker_value(1), 7), put("/b", worker_value(2), 7),
              put("/c", worker_value(3), 8)});
  keys.apply({erased("/a"), erased("/b"), erased("/c")});
  EXPECT_THAT(serving(), SizeIs(3));
  EXPECT_EQ(keys.lingering(), 3U);
  EXPECT_THAT(lines, HasSubstr(R"("event":"etcd_lingering","workers":3)"));
  // One question per lease; the first lease turns out to be alive.
  EXPECT_EQ(keys.unconfirmed(), 2U);
  const auto unconfirmed = keys.take_unconfirmed();
  ASSERT_TRUE(unconfirmed.has_value());
  EXPECT_EQ(unconfirmed->lease, 7);
  keys.withdraw(*unconfirmed);
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:3"));
}

TEST_F(EtcdKeysTest, SeesNothingInAKeyThatComesBackInTime) {
  keys.apply({put("/a", worker_value(1), 7)});
  const auto before = at("127.0.0.1:1").id();
  const std::size_t told = changes();
  keys.apply({erased("/a")});
  const auto unconfirmed = keys.take_unconfirmed();
  keys.apply({put("/a", worker_value(1), 8)});
  EXPECT_EQ(keys.lingering(), 0U);
  keys.withdraw(*unconfirmed);  // too late: it is there again
  keys.tend(Clock::now() + 2 * kLinger, false);
  EXPECT_EQ(at("127.0.0.1:1").id(), before);
  EXPECT_EQ(changes(), told);
}

TEST_F(EtcdKeysTest, AsksAfterTheLeaseItHadLast) {
  keys.apply({put("/a", worker_value(1), 7)});
  keys.apply({put("/a", worker_value(1), 8)});
  keys.apply({erased("/a")});
  EXPECT_EQ(keys.take_unconfirmed()->lease, 8);
}

TEST_F(EtcdKeysTest, TakesAnotherInstanceForAnotherWorker) {
  keys.apply({put("/a", worker_value(1, R"(,"instance":"x")"), 7)});
  const auto before = at("127.0.0.1:1").id();
  keys.apply({erased("/a")});
  keys.apply({put("/a", worker_value(1, R"(,"instance":"y")"), 8)});
  EXPECT_NE(at("127.0.0.1:1").id(), before);
  EXPECT_EQ(keys.lingering(), 0U);
}

TEST_F(EtcdKeysTest, LetsNobodyLingerInThePlaceOfAnother) {
  keys.apply({put("/a", worker_value(1, R"(,"instance":"x")"), 7)});
  keys.apply({erased("/a")});
  keys.apply({put("/b", worker_value(1, R"(,"instance":"y")"), 8)});
  EXPECT_EQ(keys.workers(), 1U);
  EXPECT_EQ(at("127.0.0.1:1").spec().instance, "y");
  // The other way round: the new one is there before the old one goes.
  keys.apply({put("/c", worker_value(1, R"(,"instance":"z")"), 9)});
  keys.apply({erased("/b")});
  EXPECT_EQ(keys.lingering(), 0U);
  EXPECT_EQ(at("127.0.0.1:1").spec().instance, "z");
}

TEST_F(EtcdKeysTest, ForgetsWhereAKeyWasWhenItMoves) {
  keys.apply({put("/a", worker_value(1), 7)});
  keys.apply({erased("/a")});
  keys.apply({put("/a", worker_value(2), 8)});
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:2"));
  keys.tend(Clock::now() + 2 * kLinger, false);
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:2"));
}

TEST_F(EtcdKeysTest, EndsLingeringWithTime) {
  keys.apply({put("/a", worker_value(1), 7)});
  keys.apply({erased("/a")});
  keys.tend(Clock::now() + kLinger - seconds(5), false);
  EXPECT_THAT(serving(), SizeIs(1));
  keys.tend(Clock::now() + kLinger, false);
  EXPECT_THAT(serving(), IsEmpty());
  EXPECT_EQ(keys.workers(), 0U);
  EXPECT_THAT(lines, HasSubstr(R"("event":"etcd_linger_over","key":"/a")"));
}

TEST_F(EtcdKeysTest, CountsNoTimeWhileEtcdIsAway) {
  keys.apply({put("/a", worker_value(1), 7)});
  keys.apply({erased("/a")});
  const Time later = Clock::now() + 10 * kLinger;
  keys.tend(later, true);
  keys.tend(later + kLinger - seconds(1), false);
  EXPECT_THAT(serving(), SizeIs(1));
  keys.tend(later + kLinger, false);
  EXPECT_THAT(serving(), IsEmpty());
}

TEST_F(EtcdKeysTest, EndsLingeringWithTheEngine) {
  keys.apply({put("/a", worker_value(1), 7), put("/b", worker_value(2), 7),
              put("/c", worker_value(3), 7)});
  for (const Fleet::Member& one : fleet().members()) one.worker->answered();
  keys.apply({erased("/a"), erased("/b")});
  at("127.0.0.1:2").unreachable(Failure::Unreachable, "silence");
  at("127.0.0.1:3").unreachable(Failure::Unreachable, "silence");
  keys.tend(Clock::now(), true);
  // The third one has its key.
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1", "127.0.0.1:3"));
  at("127.0.0.1:1").eject("it failed");
  keys.tend(Clock::now(), false);
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:3"));
}

TEST_F(EtcdKeysTest, LingersWhereAListingLacksAKey) {
  keys.replace({entry("/a", worker_value(1), 7), entry("/b", worker_value(2))}, false);
  keys.replace({}, false);
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1"));
  keys.replace({}, false);
  EXPECT_EQ(keys.lingering(), 1U);
}

TEST_F(EtcdKeysTest, LetsEverybodyLingerWhereEtcdsDataWasLost) {
  keys.replace({entry("/a", worker_value(1), 7), entry("/b", worker_value(2))}, false);
  keys.replace({}, true);
  EXPECT_THAT(serving(), SizeIs(2));
}

TEST_F(EtcdKeysTest, LetsNobodyLingerWhereThatIsSwitchedOff) {
  EtcdKeys strict(fleet(), milliseconds(0), metrics, log);
  strict.apply({put("/a", worker_value(1), 7)});
  strict.apply({erased("/a")});
  EXPECT_THAT(serving(), IsEmpty());
  EXPECT_EQ(strict.unconfirmed(), 0U);
}

}  // namespace
}  // namespace baton::fleet
