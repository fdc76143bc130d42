// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/load_bell.h"

#include "unit/fleet/fleet_fixture.h"

namespace baton::fleet {
namespace {

TEST(LoadBell, RingsForItsOneListener) {
  struct Listener : LoadListener {
    explicit Listener(int& rung) : rung_(rung) {}
    void load_fell() override { ++rung_; }
    int& rung_;
  };
  LoadBell bell;
  bell.ring();
  int rung = 0;
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::make_unique<Listener>(rung);
  };
  LoadListener& first = bell.listener(make);
  EXPECT_EQ(&bell.listener(make), &first);
  EXPECT_EQ(made, 1);
  bell.ring();
  EXPECT_EQ(rung, 1);
}

}  // namespace
}  // namespace baton::fleet
