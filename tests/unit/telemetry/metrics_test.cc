// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

namespace baton::telemetry {
namespace {

using testing::ElementsAre;

// Runs `work` in more threads than there are slots, so that some share one.
template <class Work>
void in_threads(Work work) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kSlots + 4; ++i) threads.emplace_back(work);
}
constexpr std::uint64_t kThreads = kSlots + 4;

TEST(Counter, CountsWhatAllThreadsAdd) {
  Counter counter;
  in_threads([&] {
    for (int i = 0; i < 1000; ++i) counter.add();
    counter.add(5);
  });
  EXPECT_EQ(counter.value(), kThreads * 1005);
}

TEST(Gauge, GoesUpAndDown) {
  Gauge gauge;
  gauge.set(10);
  in_threads([&] {
    for (int i = 0; i < 1000; ++i) gauge.add(1);
    for (int i = 0; i < 1001; ++i) gauge.add(-1);
  });
  EXPECT_EQ(gauge.value(), 10 - static_cast<std::int64_t>(kThreads));
}

TEST(Histogram, AValueOnABoundBelongsToIt) {
  const std::array bounds{1.0, 2.0};
  Histogram histogram(bounds);
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2.5}) histogram.observe(value);
  const auto snapshot = histogram.snapshot();
  EXPECT_THAT(snapshot.bounds, ElementsAre(1.0, 2.0));
  EXPECT_THAT(snapshot.cumulative, ElementsAre(2, 4, 5));
  EXPECT_EQ(snapshot.count, 5u);
  EXPECT_DOUBLE_EQ(snapshot.sum, 7.5);
}

TEST(Histogram, SumsWhatAllThreadsObserve) {
  Histogram histogram(duration_bounds());
  in_threads([&] {
    for (int i = 0; i < 1000; ++i) histogram.observe(0.5);
  });
  const auto snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.count, kThreads * 1000);
  EXPECT_DOUBLE_EQ(snapshot.sum, static_cast<double>(kThreads) * 500);
}

TEST(Histogram, IsReadWhileItIsWritten) {
  Histogram histogram(duration_bounds());
  std::jthread writer([&] {
    for (int i = 0; i < 20'000; ++i) histogram.observe(0.001 * (i % 100));
  });
  for (int i = 0; i < 50; ++i) {
    const auto snapshot = histogram.snapshot();
    EXPECT_TRUE(std::ranges::is_sorted(snapshot.cumulative));
    EXPECT_EQ(snapshot.cumulative.back(), snapshot.count);
  }
}

TEST(Histogram, ANumberThatIsNoneIsNotCounted) {
  Histogram histogram(duration_bounds());
  histogram.observe(std::nan(""));
  histogram.observe(1.0);
  EXPECT_EQ(histogram.snapshot().count, 1u);
  EXPECT_EQ(histogram.snapshot().sum, 1.0);
}

TEST(DurationBounds, AscendFrom100MicrosecondsToTenMinutes) {
  const auto bounds = duration_bounds();
  EXPECT_EQ(bounds.front(), 0.0001);
  EXPECT_EQ(bounds.back(), 600);
  EXPECT_TRUE(std::ranges::is_sorted(bounds, std::ranges::less_equal{}));
}

TEST(Registry, ShowsACounterThatCountsElsewhere) {
  Counter elsewhere;
  Registry registry;
  registry.counter("a_total", "Things.", elsewhere);
  elsewhere.add(3);
  EXPECT_EQ(registry.render(), "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\n");
}

TEST(Registry, WritesPrometheusText) {
  Registry registry;
  const std::array bounds{0.5, 10.0};
  auto& seconds = registry.histogram("b_seconds", "Time.", {{"phase", "prefill"}}, bounds);
  seconds.observe(0.25);
  seconds.observe(3);
  seconds.observe(30);
  registry.counter("a_total", "Things.", {{"model", "z"}}).add(2);
  registry.counter("a_total", "Things.", {{"model", "a"}, {"outcome", "ok"}}).add(3);
  registry.gauge("c", "Now.").set(-1);
  EXPECT_EQ(registry.render(),
            "# HELP a_total Things.\n"
            "# TYPE a_total counter\n"
            "a_total{model=\"z\"} 2\n"
            "a_total{model=\"a\",outcome=\"ok\"} 3\n"
            "# HELP b_seconds Time.\n"
            "# TYPE b_seconds histogram\n"
            "b_seconds_bucket{phase=\"prefill\",le=\"0.5\"} 1\n"
            "b_seconds_bucket{phase=\"prefill\",le=\"10\"} 2\n"
            "b_seconds_bucket{phase=\"prefill\",le=\"+Inf\"} 3\n"
            "b_seconds_sum{phase=\"prefill\"} 33.25\n"
            "b_seconds_count{phase=\"prefill\"} 3\n"
            "# HELP c Now.\n"
            "# TYPE c gauge\n"
            "c -1\n");
}

TEST(Registry, HistogramsWithoutLabelsHaveOnlyTheirBound) {
  Registry registry;
  const std::array bounds{1.0};
  registry.histogram("h", "H.", {}, bounds);
  EXPECT_THAT(registry.render(),
              testing::HasSubstr("h_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 0\n"
                                 "h_sum 0\nh_count 0\n"));
}

TEST(Registry, EscapesLabelValuesAndHelp) {
  Registry registry;
  registry.counter("x", "A \"word\",\na \\.", {{"model", "a\"} 9\nb\\"}});
  EXPECT_EQ(registry.render(),
            "# HELP x A \"word\",\\na \\\\.\n"
            "# TYPE x counter\n"
            "x{model=\"a\\\"} 9\\nb\\\\\"} 0\n");
}

TEST(Registry, SameNameAndLabelsInAnyOrderAreTheSameMetric) {
  Registry registry;
  auto& first = registry.counter("x", "X.", {{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(&registry.counter("x", "X.", {{"b", "2"}, {"a", "1"}}), &first);
  EXPECT_NE(&registry.counter("x", "X.", {{"a", "2"}, {"b", "1"}}), &first);
}

TEST(Registry, ThreadsThatAskAtOnceGetTheSameMetric) {
  Registry registry;
  in_threads([&] { registry.counter("x", "X.", {{"a", "1"}}).add(); });
  EXPECT_EQ(registry.counter("x", "X.", {{"a", "1"}}).value(), kThreads);
}

TEST(Registry, OneNameHasOneTypeAndOneHelp) {
  Registry registry;
  registry.counter("x", "X.");
  EXPECT_THROW(registry.gauge("x", "X."), std::logic_error);
  EXPECT_THROW(registry.counter("x", "Y."), std::logic_error);
}

TEST(Registry, AsksAtEachRenderForSeriesThatComeAndGo) {
  Registry registry;
  std::vector<std::pair<std::string, std::int64_t>> workers{{"a", 1}, {"b \"c\"", -2}};
  registry.collect("now", "What is there.", [&](const Registry::Emit& emit) {
    for (const auto& [name, value] : workers) emit({{"worker", name}}, value);
  });
  const std::string head = "# HELP now What is there.\n# TYPE now gauge\n";
  EXPECT_EQ(registry.render(), head + "now{worker=\"a\"} 1\nnow{worker=\"b \\\"c\\\"\"} -2\n");
  workers = {{"d", 4}};
  EXPECT_EQ(registry.render(), head + "now{worker=\"d\"} 4\n");
  workers.clear();
  EXPECT_EQ(registry.render(), head);
  registry.collect("now", "What is there.", [](const Registry::Emit& emit) { emit({}, 7); });
  EXPECT_EQ(registry.render(), head + "now 7\n") << "the last to ask for it tells";
  EXPECT_EQ(registry.describe().front().type, "gauge");
}

TEST(Registry, CollectsCountersToo) {
  Registry registry;
  registry.collect_counts("all", "All.", [](const Registry::Emit& emit) { emit({}, 7); });
  EXPECT_EQ(registry.render(), "# HELP all All.\n# TYPE all counter\nall 7\n");
}

TEST(Registry, WritesAHeldSeriesWhileSomebodyHoldsIt) {
  Registry registry;
  auto first = registry.held_counter("x", "X.", {{"a", "1"}});
  auto second = registry.held_counter("x", "X.", {{"a", "1"}});
  auto share = registry.held_share("y", "Y.", {{"a", "1"}});
  EXPECT_EQ(first, second);
  first->add(3);
  share->set(0.5);
  const std::string x = "# HELP x X.\n# TYPE x counter\n";
  const std::string y = "# HELP y Y.\n# TYPE y gauge\n";
  EXPECT_EQ(registry.render(), x + "x{a=\"1\"} 3\n" + y + "y{a=\"1\"} 0.5\n");
  first.reset();
  share.reset();
  EXPECT_EQ(registry.render(), x + "x{a=\"1\"} 3\n" + y);
  second.reset();
  EXPECT_EQ(registry.render(), x + y);
  const auto again = registry.held_counter("x", "X.", {{"a", "1"}});
  EXPECT_EQ(registry.render(), x + "x{a=\"1\"} 0\n" + y) << "it begins anew";
}

TEST(Registry, DescribesItsMetricsInOrderOfName) {
  Registry registry;
  registry.gauge("b", "B.");
  registry.counter("a", "A.", {{"l", "1"}});
  registry.counter("a", "A.", {{"l", "2"}});
  const auto described = registry.describe();
  ASSERT_EQ(described.size(), 2u);
  EXPECT_EQ(described[0].name, "a");
  EXPECT_EQ(described[0].type, "counter");
  EXPECT_EQ(described[0].help, "A.");
  EXPECT_EQ(described[1].name, "b");
}

}  // namespace
}  // namespace baton::telemetry
