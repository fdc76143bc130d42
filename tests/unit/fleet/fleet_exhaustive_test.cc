// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Every order in which workers of a model can come, go, come back and be found wanting: what the
// model can do afterwards is a function of who is there, and of nothing else. prefill-router.md
// §3.1, §3.3 and §3.7, where "build" is the probe of a worker that has joined.
#include "fleet/fleet.h"
#include "support/thorough.h"
#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace baton::fleet {
namespace {

using model::Disaggregation;
using model::Role;

enum class Event {
  DecodeJoins,
  DecodeLeaves,
  PrefillJoins,
  PrefillLeaves,
  PrefillReturns,  // as another instance
  BuildFails,
  TargetChanges,  // during the build
};
constexpr std::size_t kEvents = 7;
// Each event less takes a seventh of the time. Six reach the same code as seven.
std::size_t length_of_sequences() {
#if __has_feature(address_sanitizer)
  return test::thorough() ? 6 : 5;
#else
  return 7;
#endif
}

enum class Build { UnderWay, Done, Unreachable, Misconfigured };

// Who is there, and what the build of the prefill worker that is there has come to.
struct Live {
  bool decode = false;
  std::optional<Build> prefill;
};

struct Outcome {
  PrefillState state;
  bool disaggregated;
  bool ready;
  bool decode_books;
  bool prefill_books;
  bool prefill_books_if_need_be;
  bool operator==(const Outcome&) const = default;
};

// The one line: nothing but who is there now.
Outcome outcome_of(const Live& live, Disaggregation disaggregation) {
  const PrefillState state = !live.prefill || live.prefill == Build::UnderWay
                                 ? PrefillState::Pending
                             : live.prefill == Build::Done ? PrefillState::Active
                                                           : PrefillState::Unavailable;
  return {.state = state,
          .disaggregated = live.decode && live.prefill,
          .ready = live.decode &&
                   (disaggregation == Disaggregation::Auto || state == PrefillState::Active),
          .decode_books = live.decode,
          .prefill_books = live.prefill && state != PrefillState::Unavailable,
          .prefill_books_if_need_be = live.prefill && live.prefill != Build::Misconfigured};
}

// A fleet, what happens to it, and who should be there then.
class World {
 public:
  World(const config::Config& config, telemetry::Registry& metrics, telemetry::Logger& log)
      : fleet_(config, metrics, log), disaggregation_(config.models.front().disaggregation) {}

  void happen(Event event) {
    const bool disturbs_build = event == Event::BuildFails || event == Event::TargetChanges;
    if (live_.prefill == Build::UnderWay && !disturbs_build) {
      current_->answered();
      live_.prefill = Build::Done;
    }
    switch (event) {
      case Event::DecodeJoins:
        fleet_.announce(Origin::Etcd, "d", {.model = "m", .spec = worker(1, Role::Decode)});
        live_.decode = true;
        break;
      case Event::DecodeLeaves:
        fleet_.withdraw(Origin::Etcd, "d");
        live_.decode = false;
        break;
      case Event::PrefillJoins:
        if (!live_.prefill) {
          prefill_joins();
        } else {
          announce_prefill();  // once more: no news
        }
        break;
      case Event::PrefillLeaves:
        fleet_.withdraw(Origin::Etcd, "p");
        if (live_.prefill) current_->answered();  // too late to matter
        live_.prefill.reset();
        break;
      case Event::PrefillReturns:
        ++instance_;
        prefill_joins();
        break;
      case Event::BuildFails:
        build_fails();
        break;
      case Event::TargetChanges:
        target_changes();
        break;
    }
  }
  Outcome expected() const { return outcome_of(live_, disaggregation_); }
  Outcome found() const {
    const auto pool = fleet_.find("m")->choose({}, no_dice);
    scheduling::WorkerRequirements need_be;
    need_be.worst = EligibilityTier::Down;
    return {.state = pool->prefill_state(),
            .disaggregated = pool->disaggregated(),
            .ready = pool->why_not_ready().empty(),
            .decode_books = test::book_worker(pool->workers(Role::Decode), {}, no_dice).has_value(),
            .prefill_books = books_current(pool->workers(Role::Prefill), {}),
            .prefill_books_if_need_be = books_current(pool->workers(Role::Prefill), need_be)};
  }

 private:
  void announce_prefill() {
    model::Announcement said{.model = "m", .spec = worker(2, Role::Prefill)};
    said.spec.instance = std::to_string(instance_);
    fleet_.announce(Origin::Etcd, "p", std::move(said));
  }
  void prefill_joins() {
    announce_prefill();
    current_ = fleet_.find_worker("127.0.0.1:2");
    live_.prefill = Build::UnderWay;
  }
  void build_fails() {
    if (live_.prefill != Build::UnderWay) return;
    if (std::exchange(next_is_unreachable_, !next_is_unreachable_)) {
      current_->unreachable(Failure::Unreachable, "nobody is there");
      live_.prefill = Build::Unreachable;
    } else {
      current_->misconfigured("it serves another model");
      live_.prefill = Build::Misconfigured;
    }
  }
  void target_changes() {
    if (live_.prefill != Build::UnderWay) return;
    const std::shared_ptr<Worker> old = current_;
    ++instance_;
    prefill_joins();
    // The build for the old target ends, one way or another.
    if (instance_ % 2 == 0) {
      old->answered();
    } else {
      old->misconfigured("it serves another model");
    }
  }
  // Also nobody else than the one that is there.
  bool books_current(WorkerSet& set, const scheduling::WorkerRequirements& requirements) const {
    const auto booking = test::book_worker(set, requirements, no_dice);
    if (booking) EXPECT_EQ(&booking->worker(), current_.get());
    return booking.has_value();
  }

  Fleet fleet_;
  const Disaggregation disaggregation_;
  Live live_;
  std::shared_ptr<Worker> current_;  // prefill, the last one that joined
  int instance_ = 0;
  bool next_is_unreachable_ = false;
};

using Sequence = std::vector<std::size_t>;

std::string text_of(const Sequence& sequence, std::size_t length) {
  constexpr std::array kNames{"decode joins",    "decode leaves", "prefill joins", "prefill leaves",
                              "prefill returns", "build fails",   "target changes"};
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += std::string(kNames[sequence[i]]) + "; ";
  return text;
}

// The next one in order that begins with the same event; the first place that is another one.
// Nothing after the last.
std::optional<std::size_t> advance(Sequence& sequence) {
  for (std::size_t place = sequence.size() - 1; place > 0; --place) {
    if (++sequence[place] < kEvents) return place;
    sequence[place] = 0;
  }
  return std::nullopt;
}

// In parts, by their first event, that run beside each other.
struct EveryOrder : testing::TestWithParam<std::tuple<Disaggregation, std::size_t>> {};

TEST_P(EveryOrder, EndsWhereTheLiveWorkersAre) {
  config::Config config;
  config.models.emplace_back().name = "m";
  const auto& [disaggregation, first] = GetParam();
  config.models.back().disaggregation = disaggregation;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger silent(telemetry::Format::Json, telemetry::Level::Error, lines);
  Sequence sequence(length_of_sequences());
  sequence.front() = first;
  for (std::optional<std::size_t> fresh = 0; fresh; fresh = advance(sequence)) {
    World world(config, metrics, silent);
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      world.happen(static_cast<Event>(sequence[i]));
      // What begins like the sequence before has been looked at there.
      if (i < *fresh) continue;
      ASSERT_EQ(world.found(), world.expected()) << text_of(sequence, i + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryOrder,
                         testing::Combine(testing::Values(Disaggregation::Auto,
                                                          Disaggregation::Required),
                                          testing::Range(std::size_t{0}, kEvents)),
                         [](const auto& info) {
                           return std::string(model::to_string(std::get<0>(info.param))) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace baton::fleet
