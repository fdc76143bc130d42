// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/request_names.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

struct Counting : Abortable {
  void abort_by_name() override { ++aborts; }
  int aborts = 0;
};

TEST(RequestNames, NoTwoRequestsHaveTheSame) {
  RequestNames names;
  Counting one;
  EXPECT_TRUE(names.add("a", one));
  const auto again = names.add("a", one);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message(), "Duplicate request ID detected: a");
  EXPECT_EQ(again.error().http_status(), 400);
  names.remove("a");
  EXPECT_TRUE(names.add("a", one));
}

TEST(RequestNames, OneIsAbortedWithAllThatBeginLikeIt) {
  RequestNames names;
  Counting a, ab, b;
  EXPECT_TRUE(names.add("a", a) && names.add("ab", ab) && names.add("b", b));
  names.abort("a");
  EXPECT_EQ(a.aborts, 1);
  EXPECT_EQ(ab.aborts, 1);
  EXPECT_EQ(b.aborts, 0);
  names.abort("");
  names.abort("c");
  names.remove("b");
  names.abort("b");
  EXPECT_EQ(a.aborts + ab.aborts + b.aborts, 2) << "nobody is called that";
}

}  // namespace
}  // namespace baton::sim
