// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/cancellation.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace baton {
namespace {

Error gone() { return Error(Errc::ClientGone, "the client left"); }

TEST(Cancellation, TellsEveryListenerOnce) {
  Cancellation cancellation;
  int first = 0;
  int second = 0;
  const Cancellation::Listener a(cancellation, [&] { ++first; });
  const Cancellation::Listener b(cancellation, [&] { ++second; });
  EXPECT_FALSE(cancellation.requested());
  cancellation.request(gone());
  cancellation.request(gone());
  EXPECT_TRUE(cancellation.requested());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(Cancellation, KeepsTheFirstReason) {
  Cancellation cancellation;
  cancellation.request(gone());
  cancellation.request(Error(Errc::ShuttingDown, "the end"));
  EXPECT_EQ(cancellation.reason().code(), Errc::ClientGone);
  EXPECT_EQ(cancellation.reason().message(), "the client left");
}

TEST(Cancellation, TellsALateListenerAtOnce) {
  Cancellation cancellation;
  cancellation.request(gone());
  int told = 0;
  const Cancellation::Listener late(cancellation, [&] { ++told; });
  EXPECT_EQ(told, 1);
}

TEST(Cancellation, TellsNothingToAListenerThatIsGone) {
  Cancellation cancellation;
  int told = 0;
  {
    const Cancellation::Listener gone_listener(cancellation, [&] { ++told; });
  }
  cancellation.request(gone());
  EXPECT_EQ(told, 0);
}

TEST(Cancellation, AListenerMayEndItself) {
  Cancellation cancellation;
  std::optional<Cancellation::Listener> listener;
  bool alive = false;
  listener.emplace(cancellation, [&listener, &alive, held = std::make_shared<int>(1)] {
    const std::weak_ptr<int> watched = held;
    bool& outside = alive;
    listener.reset();
    outside = !watched.expired();  // what it has captured is there until it returns
  });
  cancellation.request(gone());
  EXPECT_TRUE(alive);
  EXPECT_FALSE(listener);
}

TEST(Cancellation, AListenerMayEndAnotherOne) {
  Cancellation cancellation;
  int told = 0;
  std::optional<Cancellation::Listener> second;
  const Cancellation::Listener first(cancellation, [&] { second.reset(); });
  second.emplace(cancellation, [&] { ++told; });
  const Cancellation::Listener third(cancellation, [&] { told += 10; });
  cancellation.request(gone());
  EXPECT_EQ(told, 10);
}

TEST(Cancellation, AListenerAddedByAnotherIsToldToo) {
  Cancellation cancellation;
  int told = 0;
  std::optional<Cancellation::Listener> added;
  const Cancellation::Listener first(cancellation,
                                     [&] { added.emplace(cancellation, [&] { ++told; }); });
  cancellation.request(gone());
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace baton
