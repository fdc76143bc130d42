// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Explores every state the machine can get into: all interleavings of what two workers, a client
// and a clock can do, for every hand-off mode and every policy, until nothing new comes. Under the
// address sanitizer, unless the run is a long one, only for policies that retry and migrate.
#include "handoff/state_machine.h"
#include "support/thorough.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace baton::handoff {
namespace {

using model::HandoffMode;
using model::OnPrefillFailure;

constexpr const char* kEventNames[] = {
    "prefill chosen", "no prefill",      "decode chosen", "no decode",      "prefill accepted",
    "prefill kept",   "prefill empty",   "prefill ended", "prefill failed", "decode accepted",
    "first token",    "decode finished", "decode failed", "client gone",    "grace over"};

// The outside as it really is, whatever the machine believes of it.
struct World {
  HandoffStateMachine machine;
  HandoffMode mode;
  bool choosing_prefill = false;
  bool choosing_decode = false;
  bool prefill_lives = false;
  bool prefill_accepted = false;
  bool prefill_dropped = false;
  bool prefill_over = false;  // failed or ended the request: no cache will come from it
  bool decode_lives = false;
  bool decode_accepted = false;
  bool decode_streams = false;
  bool decode_dropped = false;
  bool decode_failed = false;  // before its first token, by itself
  bool alone = false;
  int pinned = 0;
  bool maybe_fetched = false;  // a decode leg that failed may have fetched what is pinned
  bool freed = false;          // after a decode leg that failed, the workers free it themselves
  bool gone = false;
  bool grace = false;
  bool grace_over = false;
  int ends = 0;
  bool failed = false;
  bool client_has_bytes = false;
  std::string broken;  // the first rule that did not hold

  auto operator<=>(const World&) const = default;

  const ModeRules& rules() const { return rules_of(mode); }
  bool together() const { return rules().order == LegOrder::Together; }
  bool awaits_prefill() const { return rules().when_abandoned == WhenAbandoned::AwaitPrefill; }
  // It may keep blocks, which could not be released without harm before that is known.
  bool unanswered() const {
    return awaits_prefill() && !alone && prefill_lives && !prefill_dropped && decode_failed &&
           !freed;
  }
  void expect(bool holds, const char* rule) {
    if (!holds && broken.empty()) broken = rule;
  }

  void end(bool success) {
    expect(ends == 0, "the client gets exactly one end");
    expect(!(success && failed), "no success comes after an error");
    ++ends;
    failed = failed || !success;
  }

  void send(bool to_decode) {
    expect(!gone, "nothing but a release is sent for a client that has left");
    expect(ends == 0, "nothing is begun after the end");
    if (to_decode) {
      expect(!decode_lives, "never two decode legs at once");
      expect(alone || !maybe_fetched, "blocks that may be another's by now are not handed out");
      decode_lives = true;
      decode_accepted = decode_streams = decode_dropped = decode_failed = freed = false;
    } else {
      expect(!prefill_lives, "never two prefill legs at once");
      expect(pinned == 0, "blocks of an earlier attempt are released before the next one");
      prefill_lives = true;
      prefill_accepted = prefill_dropped = prefill_over = false;
    }
  }

  void perform(Action action) {
    switch (action) {
      case Action::DropPrefill:
        expect(prefill_lives, "only a living prefill leg is dropped");
        prefill_dropped = true;
        return;
      case Action::DropDecode:
        expect(decode_lives, "only a living decode leg is dropped");
        decode_dropped = true;
        return;
      case Action::SendRelease:
        expect(pinned == 1, "a release has something to release");
        expect(!decode_lives, "blocks are not released under a decode leg that may fetch them");
        pinned = 0;
        return;
      case Action::StartGrace:
        grace = true;
        grace_over = false;
        return;
      case Action::ChoosePrefill:
        expect(!prefill_lives && !decode_lives, "an attempt begins when the one before is over");
        expect(pinned == 0, "no attempt begins with blocks left pinned");
        expect(!gone, "nobody is chosen for a client that has left");
        choosing_prefill = true;
        alone = decode_streams = decode_failed = prefill_over = maybe_fetched = freed = false;
        grace_over = false;
        return;
      case Action::ChooseDecode:
        expect(!gone, "nobody is chosen for a client that has left");
        choosing_decode = true;
        grace_over = false;
        return;
      case Action::SendPrefill:
        return send(false);
      case Action::SendDecode:
        return send(true);
      case Action::SendAlone:
        alone = true;
        expect(pinned == 0, "nothing is pinned for a worker that serves alone");
        return send(true);
      case Action::Deliver:
        expect(decode_lives && decode_accepted && !decode_dropped,
               "what is delivered is a living answer");
        expect(ends == 0, "nothing is delivered after the end");
        return;
      case Action::AnswerFromPrefill:
        expect(rules().prefill_may_answer, "only some prefills have the client's answer");
        return end(true);
      case Action::FailRequest:
        expect(machine.failed_by() != Cause::None, "an error has a cause");
        expect((machine.failed_by() == Cause::ClientGone) == gone,
               "a client that has left is the only cause then, and none before");
        return end(false);
    }
  }

  void happen(const Input& input) {
    switch (input.event) {
      case Event::PrefillChosen:
      case Event::NoPrefill:
        choosing_prefill = false;
        break;
      case Event::DecodeChosen:
      case Event::NoDecode:
        choosing_decode = false;
        break;
      case Event::PrefillAccepted:
        prefill_accepted = true;
        break;
      case Event::PrefillKept:
        prefill_lives = false;
        // A decode leg that has begun to answer has fetched them before this was said.
        if (rules().keeps_blocks && !decode_streams && !freed) pinned = 1;
        maybe_fetched = false;
        break;
      case Event::PrefillEmpty:
        prefill_lives = false;
        break;
      case Event::PrefillFailed:
        // What was closed may have answered in the same moment.
        if (prefill_lives && prefill_dropped && together() && rules().keeps_blocks &&
            rules().release_in_doubt && !decode_streams && !freed)
          pinned = 1;
        [[fallthrough]];
      case Event::PrefillEnded:
        if (input.kept && !freed) pinned = 1;
        prefill_over = !choosing_prefill;
        choosing_prefill = prefill_lives = false;
        break;
      case Event::DecodeAccepted:
        decode_accepted = true;
        break;
      case Event::FirstToken:
        decode_streams = client_has_bytes = true;
        pinned = 0;
        break;
      case Event::DecodeFinished:
        decode_lives = false;
        end(true);
        break;
      case Event::DecodeFailed:
        decode_failed = !decode_streams && !decode_dropped;
        maybe_fetched = pinned == 1 && !input.failure.untouched;
        freed = input.failure.freed;
        if (freed) pinned = 0;
        decode_lives = false;
        break;
      case Event::ClientGone:
        gone = true;
        break;
      case Event::GraceOver:
        grace_over = gone || unanswered();  // or it was for an attempt that is over
        break;
    }
    for (const Action action : machine.on(input)) perform(action);
    check();
  }

  // What must hold whenever the machine has had its say.
  void check() {
    const bool waits_in_vain = !alone && decode_lives && !decode_streams && prefill_over;
    expect(!waits_in_vain || decode_dropped, "a decode leg does not wait for a failed prefill");
    const bool deserted = together() && !alone && prefill_lives && decode_failed;
    expect(!deserted || prefill_dropped || (unanswered() && !grace_over),
           "a prefill leg does not wait for a failed decode");
    // A decode worker that was told to wait would keep its blocks for as long as it runs.
    const bool awaited = awaits_prefill() && !alone && prefill_lives && decode_lives;
    expect(!(grace_over && prefill_lives) || prefill_dropped || awaited,
           "the grace ends a prefill leg");
    expect(!(grace_over && decode_lives) || decode_dropped || awaited,
           "the grace ends a decode leg");
    expect(!(awaited && gone && prefill_dropped && !decode_dropped),
           "a prefill that a decode leg waits for is not closed");
    expect(!(gone && decode_streams && decode_lives) || decode_dropped,
           "a stream nobody reads is closed at once");
    const bool at_once = alone || rules().when_abandoned == WhenAbandoned::DropDecode;
    expect(!(gone && decode_lives && at_once) || decode_dropped,
           "where it harms nobody, an abandoned decode leg is closed at once");
    expect(machine.quiet() == (!prefill_lives && !decode_lives), "the machine knows who lives");
    if (machine.quiet() && machine.ended()) {
      expect(ends == 1, "the end is the client's too");
      expect(pinned == 0, "no block is left pinned");
    }
  }

  std::vector<Input> possible() const {
    std::vector<Input> inputs;
    const auto fail = [&](Event event) {
      for (const bool retryable : {true, false}) {
        for (const bool untouched : {true, false})
          inputs.push_back({.event = event, .failure = {retryable, untouched, false}});
      }
      if (event == Event::DecodeFailed && !alone && !decode_streams) {
        inputs.push_back({.event = event, .failure = {true, false, true}});
        for (const bool retryable : {true, false})
          inputs.push_back({.event = event, .failure = {retryable, false, false, true}});
      }
    };
    if (choosing_prefill) {
      inputs.push_back({.event = Event::PrefillChosen, .mode = mode});
      inputs.push_back({Event::NoPrefill});
      fail(Event::PrefillFailed);  // what its partner must know of it could not be learned
    }
    if (choosing_decode) {
      inputs.push_back({Event::DecodeChosen});
      inputs.push_back({Event::NoDecode});
      inputs.push_back({.event = Event::NoDecode, .elsewhere = true});
    }
    if (prefill_lives) {
      if (!prefill_accepted) inputs.push_back({Event::PrefillAccepted});
      inputs.push_back({Event::PrefillKept});  // may cross with our dropping it
      if (!together()) inputs.push_back({Event::PrefillEmpty});
      if (rules().prefill_may_answer && !decode_streams) {
        inputs.push_back({Event::PrefillEnded});
        inputs.push_back({.event = Event::PrefillEnded, .kept = true});
      }
      fail(Event::PrefillFailed);
    }
    if (decode_lives) {
      if (!decode_accepted) inputs.push_back({Event::DecodeAccepted});
      // Without a cache there is no token.
      if (decode_accepted && !decode_streams && !prefill_over)
        inputs.push_back({Event::FirstToken});
      if (decode_streams && !decode_dropped) inputs.push_back({Event::DecodeFinished});
      fail(Event::DecodeFailed);
    }
    if (!gone && ends == 0) inputs.push_back({Event::ClientGone});
    if (grace && !grace_over) inputs.push_back({Event::GraceOver});
    return inputs;
  }
};

struct Origin {
  const World* before = nullptr;
  Event event = Event::ClientGone;
};

std::string path_to(const World& world, const std::map<World, Origin>& known) {
  std::vector<const char*> steps;
  for (const World* at = &world;;) {
    const Origin& origin = known.at(*at);
    if (!origin.before) break;
    steps.push_back(kEventNames[static_cast<std::size_t>(origin.event)]);
    at = origin.before;
  }
  std::string path;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) path += std::string(" → ") + *step;
  return path;
}

// Returns how many states there are.
std::size_t explore(HandoffMode mode, const HandoffPermissions& policy) {
  World first{.machine = HandoffStateMachine(policy), .mode = mode, .broken = {}};
  for (const Action action : first.machine.begin()) first.perform(action);
  std::map<World, Origin> known;
  std::deque<const World*> open{&known.emplace(first, Origin{}).first->first};
  while (!open.empty()) {
    const World& world = *open.front();
    open.pop_front();
    const std::vector<Input> inputs = world.possible();
    if (inputs.empty() && world.ends != 1) {
      ADD_FAILURE() << "stuck without an end:" << path_to(world, known);
      return known.size();
    }
    for (const Input& input : inputs) {
      World next = world;
      next.happen(input);
      const auto [at, is_new] = known.emplace(next, Origin{&world, input.event});
      if (!next.broken.empty()) {
        ADD_FAILURE() << next.broken << "; mode " << to_string(mode) << ":"
                      << path_to(at->first, known);
        return known.size();
      }
      if (is_new) open.push_back(&at->first);
    }
  }
  return known.size();
}

class Exploration : public testing::TestWithParam<HandoffMode> {};

TEST_P(Exploration, HoldsEveryRuleInEveryStateUnderEveryPolicy) {
  std::size_t states = 0;
  for (const auto on_failure :
       {OnPrefillFailure::Retry, OnPrefillFailure::Fallback, OnPrefillFailure::Fail}) {
    for (const bool required : {false, true}) {
      for (const std::size_t retries : {0U, 2U}) {
        for (const std::size_t migrations : {0U, 1U}) {
          if (!test::thorough() && (required || retries == 0 || migrations == 0)) continue;
          const HandoffPermissions policy{
              .required = required,
              .decode_may_prefill = rules_of(GetParam()).decode_may_prefill,
              .on_prefill_failure = on_failure,
              .retries = retries,
              .migrations = migrations};
          states += explore(GetParam(), policy);
          if (HasFailure()) return;
        }
      }
    }
  }
  RecordProperty("states", static_cast<int>(states));
  EXPECT_GT(states, test::thorough() ? 5000U : 500U);
}

TEST_P(Exploration, HoldsEveryRuleWhereOneWorkerDoesBoth) {
  for (const std::size_t retries : {0U, 2U}) {
    for (const std::size_t migrations : {0U, 2U})
      explore(GetParam(), {.disaggregate = false, .retries = retries, .migrations = migrations});
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Exploration,
                         testing::Values(HandoffMode::NixlPull, HandoffMode::NixlPush,
                                         HandoffMode::Mooncake, HandoffMode::Bootstrap,
                                         HandoffMode::ContextFirst, HandoffMode::GenerationFirst),
                         [](const auto& instance) {
                           std::string name(to_string(instance.param));
                           std::erase(name, '_');
                           return name;
                         });

}  // namespace
}  // namespace baton::handoff
