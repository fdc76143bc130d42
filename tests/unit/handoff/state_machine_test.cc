// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// One small story per row of prefill-router.md §1.3 and per step of its §2.1, §2.6 and §2.7 that
// decides something. machine_exploration_test.cc has all other stories.
#include "handoff/state_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <vector>

namespace baton::handoff {

// For messages of failed tests.
void PrintTo(Action action, std::ostream* out) {
  constexpr const char* kNames[] = {
      "DropPrefill", "DropDecode", "SendRelease", "StartGrace", "ChoosePrefill",     "ChooseDecode",
      "SendPrefill", "SendDecode", "SendAlone",   "Deliver",    "AnswerFromPrefill", "FailRequest"};
  *out << kNames[static_cast<std::size_t>(action)];
}

namespace {

using model::HandoffMode;
using model::OnPrefillFailure;
using testing::ElementsAre;
using testing::IsEmpty;
using enum Action;
using enum Event;

constexpr Failure kOwnFault{.retryable = false};
constexpr Failure kUntouched{.retryable = true, .untouched = true};
constexpr Failure kMaybeBegun{.retryable = true, .untouched = false};
constexpr Failure kFreed{.retryable = true, .freed = true};
constexpr Failure kOwnFaultFreed{.retryable = false, .freed = true};

// A machine that is told events and remembers what it said to the last.
struct Story {
  explicit Story(HandoffPermissions policy = {}) : machine(policy), said(machine.begin()) {}

  const HandoffStateMachine::Actions& operator()(const Input& input) {
    said = machine.on(input);
    return said;
  }
  const HandoffStateMachine::Actions& operator()(Event event) { return (*this)(Input{event}); }
  const HandoffStateMachine::Actions& operator()(Event event, Failure failure) {
    return (*this)(Input{.event = event, .failure = failure});
  }
  const HandoffStateMachine::Actions& choose(HandoffMode mode) {
    return (*this)(Input{.event = PrefillChosen, .mode = mode});
  }
  // As far as a prefill leg that runs, or in the other modes both legs.
  Story& under_way(HandoffMode mode) {
    choose(mode);
    if (rules_of(mode).order == LegOrder::Together) (*this)(DecodeChosen);
    return *this;
  }
  // As far as a decode leg that fetches.
  Story& fetching(HandoffMode mode) {
    under_way(mode);
    if (rules_of(mode).order == LegOrder::Together) return *this;
    (*this)(PrefillKept);
    (*this)(DecodeChosen);
    return *this;
  }
  // As far as a stream in the client's hands.
  Story& streaming(HandoffMode mode) {
    fetching(mode);
    if (rules_of(mode).order == LegOrder::Together) (*this)(PrefillKept);
    (*this)(DecodeAccepted);
    (*this)(FirstToken);
    return *this;
  }

  HandoffStateMachine machine;
  HandoffStateMachine::Actions said;
};

constexpr HandoffMode kPrefillFirst[] = {HandoffMode::NixlPull, HandoffMode::ContextFirst};
constexpr HandoffMode kTogether[] = {HandoffMode::NixlPush, HandoffMode::Mooncake,
                                     HandoffMode::Bootstrap, HandoffMode::GenerationFirst};

// §1.3 PrefillOutcome.

TEST(Outcome, CompletedIsAPrefillAndThenADecode) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    EXPECT_THAT(story.said, ElementsAre(ChoosePrefill));
    EXPECT_THAT(story.choose(mode), ElementsAre(SendPrefill));
    EXPECT_THAT(story(PrefillAccepted), IsEmpty());
    EXPECT_THAT(story(PrefillKept), ElementsAre(ChooseDecode));
    EXPECT_THAT(story(DecodeChosen), ElementsAre(SendDecode));
    EXPECT_THAT(story(DecodeAccepted), ElementsAre(Deliver));
    EXPECT_THAT(story(FirstToken), IsEmpty());
    EXPECT_THAT(story(DecodeFinished), IsEmpty());
    EXPECT_TRUE(story.machine.ended() && story.machine.quiet());
    EXPECT_EQ(story.machine.attempts(), 1U);
  }
}

TEST(Outcome, BootstrapIsBothLegsAtOnceAfterBothAreChosen) {
  for (const HandoffMode mode : kTogether) {
    Story story;
    EXPECT_THAT(story.choose(mode), ElementsAre(ChooseDecode)) << "before anything is sent";
    EXPECT_THAT(story(DecodeChosen), ElementsAre(SendPrefill, SendDecode));
    EXPECT_THAT(story(DecodeAccepted), ElementsAre(Deliver));
    EXPECT_THAT(story(PrefillKept), IsEmpty());
    EXPECT_THAT(story(FirstToken), IsEmpty());
    EXPECT_THAT(story(DecodeFinished), IsEmpty());
    EXPECT_TRUE(story.machine.ended() && story.machine.quiet());
  }
}

TEST(Outcome, BootstrapDoesNotWaitForThePrefillsAnswer) {
  Story story;
  story.under_way(HandoffMode::Bootstrap);
  story(DecodeAccepted);
  story(FirstToken);
  EXPECT_THAT(story(DecodeFinished), IsEmpty());
  EXPECT_TRUE(story.machine.ended());
  EXPECT_THAT(story(PrefillKept), IsEmpty());
  EXPECT_TRUE(story.machine.quiet());
}

TEST(Outcome, TerminalIsThePrefillsAnswerAndNoDecode) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    story.choose(mode);
    EXPECT_THAT(story(PrefillEnded), ElementsAre(AnswerFromPrefill));
    EXPECT_TRUE(story.machine.ended());
  }
}

TEST(Outcome, TerminalWithBlocksThatAreHeldAllTheSameReleasesThem) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    story.choose(mode);
    EXPECT_THAT(story({.event = PrefillEnded, .kept = true}),
                ElementsAre(SendRelease, AnswerFromPrefill));
  }
  for (const Failure& failure : {kUntouched, kFreed}) {
    Story story;
    story.under_way(HandoffMode::NixlPush);
    EXPECT_THAT(story({.event = PrefillEnded, .kept = true}), ElementsAre(DropDecode));
    story(DecodeFailed, failure);
    if (failure.freed) {
      EXPECT_THAT(story.said, ElementsAre(AnswerFromPrefill)) << "the decode worker takes them";
    } else {
      EXPECT_THAT(story.said, ElementsAre(SendRelease, AnswerFromPrefill));
    }
  }
}

// §2.1, the gap below the table: there it is only logged.
TEST(Outcome, TerminalBesideADecodeClosesThatAndIsTheAnswer) {
  for (const HandoffMode mode :
       {HandoffMode::NixlPush, HandoffMode::Mooncake, HandoffMode::GenerationFirst}) {
    Story story;
    story.under_way(mode);
    EXPECT_THAT(story(PrefillEnded), ElementsAre(DropDecode));
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(AnswerFromPrefill));
  }
}

// §2.1 steps 4 and 10.
TEST(Outcome, PassthroughIsOneWorkerWhereNoPrefillIsThere) {
  Story story;
  EXPECT_THAT(story(NoPrefill), ElementsAre(ChooseDecode));
  EXPECT_FALSE(story.machine.handing_off());
  EXPECT_THAT(story(DecodeChosen), ElementsAre(SendAlone));
  EXPECT_THAT(story(DecodeAccepted), ElementsAre(Deliver));
}

TEST(Outcome, PassthroughIsNoneWhereDecodeWorkersCannotPrefill) {
  Story story({.decode_may_prefill = false});
  EXPECT_THAT(story(NoPrefill), ElementsAre(FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::NoPrefill);
}

TEST(Outcome, AggregatedIsOneWorkerFromTheBeginning) {
  Story story({.disaggregate = false});
  EXPECT_THAT(story.said, ElementsAre(ChooseDecode));
  EXPECT_THAT(story(DecodeChosen), ElementsAre(SendAlone));
}

TEST(Outcome, EmptyIsADecodeThatComputesThePromptItself) {
  Story story;
  story.choose(HandoffMode::NixlPull);
  EXPECT_THAT(story(PrefillEmpty), ElementsAre(ChooseDecode));
  EXPECT_THAT(story(DecodeChosen), ElementsAre(SendDecode));
}

// §1.3 PrefillError.

TEST(PrefillErrors, NotActivatedIsAnErrorWherePrefillIsRequired) {
  Story story({.required = true});
  EXPECT_THAT(story(NoPrefill), ElementsAre(FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::NoPrefill);
}

TEST(PrefillErrors, ARequestThatCannotBeRoutedIsNotServedDifferently) {
  Story story({.on_prefill_failure = OnPrefillFailure::Fallback});
  EXPECT_THAT(story(PrefillFailed, kOwnFault), ElementsAre(FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::Prefill);
}

// §2.1 step 15: an error, NoDisaggregatedParams among them, has no fallback there.
TEST(PrefillErrors, WithRetryAnotherWorkerIsTriedUntilTheBudgetIsUsedUp) {
  Story story({.on_prefill_failure = OnPrefillFailure::Retry, .retries = 2});
  for (std::size_t attempt = 1; attempt <= 2; ++attempt) {
    story.choose(HandoffMode::NixlPull);
    EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(ChoosePrefill));
    EXPECT_EQ(story.machine.attempts(), attempt + 1);
  }
  story.choose(HandoffMode::NixlPull);
  EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::Prefill);
  EXPECT_EQ(story.machine.retries(), 2U);
}

TEST(Suspicion, CondemnedIsTheEndUnderEveryPolicy) {
  for (const auto policy : {OnPrefillFailure::Retry, OnPrefillFailure::Fallback}) {
    Story by_prefill({.on_prefill_failure = policy, .migrations = 3});
    by_prefill.under_way(HandoffMode::NixlPull);
    by_prefill.machine.condemn();
    EXPECT_THAT(by_prefill(PrefillFailed, kMaybeBegun), ElementsAre(FailRequest));

    Story by_decode({.on_prefill_failure = policy, .migrations = 3});
    by_decode.fetching(HandoffMode::NixlPull);
    by_decode.machine.condemn();
    EXPECT_THAT(by_decode(DecodeFailed, {.either = true}), ElementsAre(FailRequest));

    Story before_choice({.on_prefill_failure = policy});
    before_choice.machine.condemn();
    EXPECT_THAT(before_choice(NoPrefill), ElementsAre(FailRequest));
  }
}

TEST(PrefillErrors, WithRetryNobodyElseIsTheEnd) {
  Story story;
  story.choose(HandoffMode::NixlPull);
  story(PrefillFailed, kMaybeBegun);
  EXPECT_THAT(story(NoPrefill), ElementsAre(FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::Prefill) << "that says more than that nobody is left";
}

TEST(PrefillErrors, WithFallbackOneWorkerServesInTheEnd) {
  for (const std::size_t retries : {0U, 1U}) {
    Story story({.on_prefill_failure = OnPrefillFailure::Fallback, .retries = retries});
    story.choose(HandoffMode::NixlPull);
    story(PrefillFailed, kMaybeBegun);
    if (retries > 0) {
      EXPECT_THAT(story.said, ElementsAre(ChoosePrefill));
      story(NoPrefill);
    }
    EXPECT_THAT(story.said, ElementsAre(ChooseDecode));
    EXPECT_THAT(story(DecodeChosen), ElementsAre(SendAlone));
    EXPECT_FALSE(story.machine.handing_off());
  }
}

// What was tried on nobody is not counted, and nothing else is uncounted for it.
TEST(PrefillErrors, AreRetriedAsOftenAsSomebodyIsFound) {
  for (const std::size_t retries : {1U, 2U}) {
    Story story({.on_prefill_failure = OnPrefillFailure::Fallback, .retries = retries});
    for (int attempt = 0; attempt < 2; ++attempt) {
      story.choose(HandoffMode::NixlPull);
      story(PrefillFailed, kMaybeBegun);
    }
    if (retries > 1) story(NoPrefill);
    EXPECT_THAT(story.said, ElementsAre(ChooseDecode)) << "the fallback";
    EXPECT_THAT(story(NoDecode), ElementsAre(FailRequest));
    EXPECT_EQ(story.machine.retries(), 1U);
  }
}

TEST(PrefillErrors, MayBeWhyADecodeFailedSoWithFallbackOneWorkerServesInTheEnd) {
  for (const bool either : {false, true}) {
    Story story({.on_prefill_failure = OnPrefillFailure::Fallback, .retries = 0});
    story.fetching(HandoffMode::NixlPull);
    story(DecodeFailed, {.retryable = true, .untouched = false, .either = either});
    EXPECT_THAT(story.said, ElementsAre(SendRelease, either ? ChooseDecode : FailRequest));
  }
}

TEST(PrefillErrors, WithFallbackButNobodyWhoCanIsTheEnd) {
  Story story({.decode_may_prefill = false,
               .on_prefill_failure = OnPrefillFailure::Fallback,
               .retries = 0});
  story.under_way(HandoffMode::Bootstrap);
  story(PrefillFailed, kMaybeBegun);
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
}

TEST(PrefillErrors, WithFailTheFirstIsTheEnd) {
  Story story({.on_prefill_failure = OnPrefillFailure::Fail});
  story.choose(HandoffMode::NixlPull);
  EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(FailRequest));
}

TEST(PrefillErrors, TheRequestsOwnFaultIsTheEndUnderEveryPolicy) {
  for (const auto policy :
       {OnPrefillFailure::Retry, OnPrefillFailure::Fallback, OnPrefillFailure::Fail}) {
    Story story({.on_prefill_failure = policy});
    story.choose(HandoffMode::NixlPull);
    EXPECT_THAT(story(PrefillFailed, kOwnFault), ElementsAre(FailRequest));
  }
}

// §2.1 step 13a: there a failing prefill is only logged, and decode waits for minutes.
TEST(PrefillErrors, BesideADecodeCloseThatAtOnceAndAllIsRepeated) {
  for (const HandoffMode mode : kTogether) {
    for (const bool delivered : {false, true}) {
      Story story;
      story.under_way(mode);
      if (delivered) story(DecodeAccepted);
      EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(DropDecode));
      EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(ChoosePrefill));
      EXPECT_EQ(story.machine.attempts(), 2U);
    }
  }
}

TEST(PrefillErrors, DoNotMatterAfterTheFirstToken) {
  for (const HandoffMode mode : kTogether) {
    Story story;
    story.under_way(mode);
    story(DecodeAccepted);
    story(FirstToken);
    EXPECT_THAT(story(PrefillFailed, kMaybeBegun), IsEmpty());
    EXPECT_THAT(story(DecodeFinished), IsEmpty());
    EXPECT_TRUE(story.machine.ended());
  }
}

// §2.1 step 22: there a decode error is the client's.

TEST(DecodeErrors, OfAnUntouchedHandoffUseItAgain) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    story.fetching(mode);
    EXPECT_THAT(story(DecodeFailed, kUntouched), ElementsAre(ChooseDecode));
    EXPECT_THAT(story(DecodeChosen), ElementsAre(SendDecode));
    EXPECT_EQ(story.machine.attempts(), 1U) << "it is the same hand-off";
    EXPECT_EQ(story.machine.retries(), 1U);
  }
}

TEST(DecodeErrors, OfAHandoffThatMayBeUsedReleaseItAndBeginAnew) {
  for (const HandoffMode mode : kPrefillFirst) {
    for (const bool delivered : {false, true}) {
      Story story;
      story.fetching(mode);
      if (delivered) story(DecodeAccepted);
      EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(SendRelease, ChoosePrefill));
      EXPECT_EQ(story.machine.attempts(), 2U);
    }
  }
}

TEST(DecodeErrors, WithoutACacheNeedAnotherDecodeOnly) {
  Story story;
  story.choose(HandoffMode::NixlPull);
  story(PrefillEmpty);
  story(DecodeChosen);
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(ChooseDecode));
}

TEST(DecodeErrors, BesideAPrefillCloseThatAtOnceAndAllIsRepeated) {
  for (const HandoffMode mode : kTogether) {
    if (rules_of(mode).when_abandoned == WhenAbandoned::AwaitPrefill) continue;
    Story story;
    story.under_way(mode);
    EXPECT_THAT(story(DecodeFailed, kUntouched), ElementsAre(DropPrefill));
    story(PrefillFailed, kMaybeBegun);
    // It may have answered in the moment it was closed.
    if (rules_of(mode).keeps_blocks && rules_of(mode).release_in_doubt) {
      EXPECT_THAT(story.said, ElementsAre(SendRelease, ChoosePrefill));
    } else {
      EXPECT_THAT(story.said, ElementsAre(ChoosePrefill));
    }
  }
}

TEST(DecodeErrors, BesideAPushWaitForItsAnswerAndReleaseWhatItKeeps) {
  Story story;
  story.under_way(HandoffMode::NixlPush);
  EXPECT_THAT(story(DecodeFailed, kUntouched), ElementsAre(StartGrace));
  EXPECT_THAT(story(PrefillAccepted), IsEmpty());
  EXPECT_THAT(story(PrefillKept), ElementsAre(SendRelease, ChoosePrefill));
  EXPECT_THAT(story(GraceOver), IsEmpty()) << "it was for the attempt before";
  story.under_way(HandoffMode::NixlPush);
  EXPECT_THAT(story(DecodeFailed, kUntouched), ElementsAre(StartGrace));
}

TEST(DecodeErrors, BesideAPushThatTakesTooLongCloseIt) {
  Story story;
  story.under_way(HandoffMode::NixlPush);
  story(DecodeFailed, kUntouched);
  EXPECT_THAT(story(GraceOver), ElementsAre(DropPrefill));
  EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(ChoosePrefill));
}

TEST(DecodeErrors, BesideAPushWhoseClientLeavesMeanwhileReleaseWhatItKeeps) {
  Story story;
  story.under_way(HandoffMode::NixlPush);
  story(DecodeFailed, kUntouched);
  EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace, FailRequest));
  EXPECT_FALSE(story.machine.quiet());
  EXPECT_THAT(story(PrefillKept), ElementsAre(SendRelease));
  EXPECT_TRUE(story.machine.quiet());
}

TEST(DecodeErrors, AfterAPrefillBesideItReleaseWhatThatKeeps) {
  for (const HandoffMode mode : kTogether) {
    Story story;
    story.under_way(mode);
    story(PrefillKept);
    story(DecodeFailed, kMaybeBegun);
    if (rules_of(mode).keeps_blocks) {
      EXPECT_THAT(story.said, ElementsAre(SendRelease, ChoosePrefill));
    } else {
      EXPECT_THAT(story.said, ElementsAre(ChoosePrefill));
    }
  }
}

TEST(DecodeErrors, OfAHandoffThatTheWorkersFreeReleaseNothing) {
  Story pull;
  pull.fetching(HandoffMode::NixlPull);
  EXPECT_THAT(pull(DecodeFailed, kFreed), ElementsAre(ChoosePrefill));
  Story refused;
  refused.fetching(HandoffMode::NixlPull);
  EXPECT_THAT(refused(DecodeFailed, kOwnFaultFreed), ElementsAre(FailRequest));
  Story push;
  push.under_way(HandoffMode::NixlPush);
  push(PrefillKept);
  EXPECT_THAT(push(DecodeFailed, kFreed), ElementsAre(ChoosePrefill));
  Story late;
  late.under_way(HandoffMode::NixlPush);
  EXPECT_THAT(late(DecodeFailed, kFreed), ElementsAre(DropPrefill));
  EXPECT_THAT(late(PrefillKept), ElementsAre(ChoosePrefill)) << "what it keeps is taken";
}

TEST(DecodeErrors, OfTheRequestsOwnFaultReleaseAndFail) {
  Story story;
  story.fetching(HandoffMode::NixlPull);
  EXPECT_THAT(story(DecodeFailed, kOwnFault), ElementsAre(SendRelease, FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::Decode);
}

TEST(DecodeErrors, BeyondTheBudgetReleaseAndFail) {
  Story story({.retries = 0});
  story.fetching(HandoffMode::NixlPull);
  EXPECT_THAT(story(DecodeFailed, kUntouched), ElementsAre(SendRelease, FailRequest));
}

TEST(DecodeErrors, WithNobodyElseReleaseAndFail) {
  Story story;
  story.fetching(HandoffMode::NixlPull);
  story(DecodeFailed, kUntouched);
  EXPECT_THAT(story(NoDecode), ElementsAre(SendRelease, FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::Decode);
}

TEST(DecodeErrors, NobodyFromTheBeginningIsACauseOfItsOwn) {
  Story story;
  story.choose(HandoffMode::Bootstrap);
  EXPECT_THAT(story(NoDecode), ElementsAre(FailRequest)) << "nothing was sent";
  EXPECT_EQ(story.machine.failed_by(), Cause::NoDecode);
}

// The namespace of the prefill worker has lost its decode workers.
TEST(DecodeErrors, NobodyIsLeftHereRepeatsAllInAnotherNamespace) {
  Story story({.retries = 1});
  story.choose(HandoffMode::NixlPull);
  story(PrefillKept);
  EXPECT_THAT(story(Input{.event = NoDecode, .elsewhere = true}),
              ElementsAre(SendRelease, ChoosePrefill));
  EXPECT_EQ(story.machine.retries(), 1U);
  story.choose(HandoffMode::NixlPull);
  story(PrefillKept);
  EXPECT_THAT(story(Input{.event = NoDecode, .elsewhere = true}),
              ElementsAre(SendRelease, FailRequest))
      << "no retry is left";
  EXPECT_EQ(story.machine.failed_by(), Cause::NoDecode);
}

TEST(DecodeErrors, NobodyIsLeftHereNorElsewhereIsTheSameCause) {
  Story story({.required = true});
  story.choose(HandoffMode::Bootstrap);
  EXPECT_THAT(story(Input{.event = NoDecode, .elsewhere = true}), ElementsAre(ChoosePrefill));
  EXPECT_THAT(story(NoPrefill), ElementsAre(FailRequest));
  EXPECT_EQ(story.machine.failed_by(), Cause::NoDecode);
  EXPECT_EQ(story.machine.retries(), 0U) << "it was tried on nobody";
}

TEST(DecodeErrors, OfOneWhoDoesBothNeedAnother) {
  Story story({.disaggregate = false});
  story(DecodeChosen);
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(ChooseDecode));
}

// After the first token.

TEST(Migrations, BeginAnewWhereTheyAreAllowed) {
  for (const ModeRules& rules : mode_table()) {
    Story story({.migrations = 1});
    story.streaming(rules.mode);
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(ChoosePrefill));
    EXPECT_EQ(story.machine.migrations(), 1U);
    story.streaming(rules.mode);
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest)) << "only one";
  }
}

TEST(Migrations, OfOneWhoDoesBothGoToAnother) {
  Story story({.disaggregate = false, .migrations = 1});
  story(DecodeChosen);
  story(DecodeAccepted);
  story(FirstToken);
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(ChooseDecode));
}

TEST(Migrations, HaveARetryBudgetOfTheirOwn) {
  Story story({.retries = 1, .migrations = 1});
  story.choose(HandoffMode::NixlPull);
  story(PrefillFailed, kMaybeBegun);
  story.streaming(HandoffMode::NixlPull);
  story(DecodeFailed, kMaybeBegun);
  story.choose(HandoffMode::NixlPull);
  EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(ChoosePrefill));
}

TEST(Migrations, AreNoneWhereTheyAreNotAllowedOrForbidden) {
  Story off;
  off.streaming(HandoffMode::NixlPull);
  EXPECT_THAT(off(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
  Story forbidden({.migrations = 3});
  forbidden.streaming(HandoffMode::NixlPull);
  forbidden.machine.forbid_migration();
  EXPECT_THAT(forbidden(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
}

TEST(Migrations, CloseAPrefillThatStillRunsBesideTheLostStream) {
  Story story({.migrations = 1});
  story.under_way(HandoffMode::Bootstrap);
  story(DecodeAccepted);
  story(FirstToken);
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(DropPrefill));
  EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(ChoosePrefill));
}

// §2.7. Clients that leave, phase by phase.

TEST(ClientGoneWhile, APrefillIsChosenMeansThatNothingIsSent) {
  for (const ModeRules& rules : mode_table()) {
    Story story;
    EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace, FailRequest));
    EXPECT_EQ(story.machine.failed_by(), Cause::ClientGone);
    EXPECT_THAT(story.choose(rules.mode), IsEmpty());
    EXPECT_TRUE(story.machine.quiet());
  }
}

TEST(ClientGoneWhile, ADecodeIsChosenForLegsTogetherMeansThatNothingIsSent) {
  for (const HandoffMode mode : kTogether) {
    Story story;
    story.choose(mode);
    EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace, FailRequest));
    EXPECT_THAT(story(DecodeChosen), IsEmpty());
    EXPECT_TRUE(story.machine.quiet());
  }
}

TEST(ClientGoneWhile, APrefillRunsLetsItFinishAndThenReleases) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    story.choose(mode);
    EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace));
    EXPECT_THAT(story(PrefillAccepted), IsEmpty());
    EXPECT_THAT(story(PrefillKept), ElementsAre(SendRelease, FailRequest));
  }
}

TEST(ClientGoneWhile, APrefillRunsThatKeepsNothingReleasesNothing) {
  for (const Event last : {PrefillEmpty, PrefillEnded, PrefillFailed}) {
    Story story;
    story.choose(HandoffMode::NixlPull);
    story(ClientGone);
    EXPECT_THAT(story(last), ElementsAre(FailRequest));
    EXPECT_EQ(story.machine.failed_by(), Cause::ClientGone);
  }
}

TEST(ClientGoneWhile, APrefillRunsForTooLongDropsItAfterTheGrace) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    story.choose(mode);
    story(ClientGone);
    EXPECT_THAT(story(GraceOver), ElementsAre(DropPrefill));
    EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(FailRequest));
  }
}

TEST(ClientGoneWhile, ADecodeIsChosenAfterAPrefillReleases) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    story.choose(mode);
    story(PrefillKept);
    EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace, SendRelease, FailRequest));
    EXPECT_THAT(story(DecodeChosen), IsEmpty());
  }
}

TEST(ClientGoneWhile, ADecodeFetchesLetsItGetTheCacheFirst) {
  for (const ModeRules& rules : mode_table()) {
    if (rules.when_abandoned == WhenAbandoned::DropDecode) continue;
    Story story;
    story.fetching(rules.mode);
    EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace));
    EXPECT_THAT(story(DecodeAccepted), IsEmpty()) << "there is nobody to deliver to";
    EXPECT_THAT(story(FirstToken), ElementsAre(DropDecode));
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
  }
}

TEST(ClientGoneWhile, ADecodeFetchesForTooLongDropsItAndReleases) {
  for (const HandoffMode mode : kPrefillFirst) {
    Story story;
    story.fetching(mode);
    story(ClientGone);
    EXPECT_THAT(story(GraceOver), ElementsAre(DropDecode));
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(SendRelease, FailRequest));
  }
}

TEST(ClientGoneWhile, APushRunsWaitsForThePrefillAndThenForTheTransfer) {
  Story story;
  story.under_way(HandoffMode::NixlPush);
  EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace));
  EXPECT_THAT(story(GraceOver), IsEmpty()) << "without a prefill the decode's blocks stay for ever";
  EXPECT_THAT(story(PrefillKept), ElementsAre(StartGrace)) << "the transfer begins now";
  EXPECT_THAT(story(GraceOver), ElementsAre(DropDecode));
  EXPECT_THAT(story(DecodeFailed, kFreed), ElementsAre(FailRequest)) << "the prefill writes on";
  EXPECT_TRUE(story.machine.quiet());
}

TEST(ClientGoneWhile, BothLegsRunInSglangClosesTheDecodeAtOnceAndThePrefillAfterTheGrace) {
  Story story;
  story.under_way(HandoffMode::Bootstrap);
  EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace, DropDecode));
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
  EXPECT_FALSE(story.machine.quiet()) << "a transfer may be under way";
  EXPECT_THAT(story(GraceOver), ElementsAre(DropPrefill));
  EXPECT_THAT(story(PrefillFailed, kMaybeBegun), IsEmpty());
  EXPECT_TRUE(story.machine.quiet());
}

TEST(ClientGoneWhile, BothLegsRunInSglangLeavesAPrefillAloneThatEndsByItself) {
  Story story;
  story.under_way(HandoffMode::Bootstrap);
  story(ClientGone);
  story(DecodeFailed, kMaybeBegun);
  EXPECT_THAT(story(PrefillKept), IsEmpty()) << "it keeps no blocks";
}

TEST(ClientGoneWhile, BothLegsRunAndThePrefillFailsClosesTheDecode) {
  for (const HandoffMode mode : kTogether) {
    if (rules_of(mode).when_abandoned == WhenAbandoned::DropDecode) continue;
    Story story;
    story.under_way(mode);
    EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace));
    EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(DropDecode));
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
  }
}

TEST(ClientGoneWhile, BothLegsRunAndTheDecodeFailsClosesThePrefill) {
  for (const HandoffMode mode : kTogether) {
    if (rules_of(mode).when_abandoned != WhenAbandoned::Complete) continue;
    Story story;
    story.under_way(mode);
    story(ClientGone);
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(DropPrefill, FailRequest));
    EXPECT_THAT(story(PrefillFailed, kMaybeBegun), ElementsAre(SendRelease)) << "in doubt";
  }
}

TEST(ClientGoneWhile, APushRunsAndItsDecodeFailsReleasesWhatThePrefillKeeps) {
  Story story;
  story.under_way(HandoffMode::NixlPush);
  story(ClientGone);
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
  EXPECT_THAT(story(PrefillKept), ElementsAre(SendRelease));
  Story slow;
  slow.under_way(HandoffMode::NixlPush);
  slow(ClientGone);
  slow(DecodeFailed, kMaybeBegun);
  EXPECT_THAT(slow(GraceOver), ElementsAre(DropPrefill));
  EXPECT_THAT(slow(PrefillFailed, kMaybeBegun), IsEmpty());
}

TEST(ClientGoneWhile, AStreamRunsClosesItAtOnce) {
  for (const ModeRules& rules : mode_table()) {
    Story story({.migrations = 3});
    story.streaming(rules.mode);
    EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace, DropDecode));
    EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest)) << "no migration";
  }
}

TEST(ClientGoneWhile, OneWorkerDoesBothClosesItAtOnce) {
  Story story({.disaggregate = false});
  story(DecodeChosen);
  EXPECT_THAT(story(ClientGone), ElementsAre(StartGrace, DropDecode));
  EXPECT_THAT(story(DecodeFailed, kMaybeBegun), ElementsAre(FailRequest));
}

TEST(ClientGoneWhile, NothingIsLeftToDoMeansNothing) {
  Story story;
  story.streaming(HandoffMode::NixlPull);
  story(DecodeFinished);
  EXPECT_THAT(story(ClientGone), IsEmpty());
}

TEST(Modes, HaveARowEach) {
  std::set<HandoffMode> modes;
  for (const ModeRules& rules : mode_table()) {
    modes.insert(rules.mode);
    EXPECT_EQ(rules_of(rules.mode).mode, rules.mode);
  }
  EXPECT_EQ(modes.size(), 6U);
}

}  // namespace
}  // namespace baton::handoff
