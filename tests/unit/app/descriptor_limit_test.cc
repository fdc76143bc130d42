// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/descriptor_limit.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace baton::app {
namespace {

// The limits are as they were when this is gone.
class Limits {
 public:
  Limits() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~Limits() { setrlimit(RLIMIT_NOFILE, &before_); }
  rlim_t most() const { return before_.rlim_max; }
  void set(rlim_t soft) const {
    const rlimit changed{soft, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &changed), 0);
  }

 private:
  rlimit before_{};
};

TEST(DescriptorLimit, IsTheSoftOne) {
  const Limits limits;
  limits.set(200);
  EXPECT_EQ(descriptor_limit(), 200U);
  limits.set(300);
  EXPECT_EQ(descriptor_limit(), 300U);
}

TEST(DescriptorLimit, IsRaisedToTheHardOne) {
  const Limits limits;
  limits.set(200);
  raise_descriptor_limit();
  EXPECT_EQ(descriptor_limit(), limits.most());
  raise_descriptor_limit();
  EXPECT_EQ(descriptor_limit(), limits.most());
}

}  // namespace
}  // namespace baton::app
