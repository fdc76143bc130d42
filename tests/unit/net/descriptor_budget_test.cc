// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/descriptor_budget.h"

#include "support/no_descriptors.h"

#include <boost/asio/error.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::net {
namespace {

namespace errc = boost::system::errc;
using testing::ElementsAre;

TEST(LocalFault, IsWhatSaysNothingOfThePeer) {
  for (const auto lack :
       {errc::too_many_files_open, errc::too_many_files_open_in_system, errc::no_buffer_space,
        errc::not_enough_memory, errc::address_not_available})
    EXPECT_TRUE(is_local_fault(errc::make_error_code(lack))) << lack;
  EXPECT_TRUE(is_local_fault(boost::asio::error::no_descriptors));
  for (const auto fault : {errc::connection_refused, errc::connection_reset, errc::timed_out,
                           errc::host_unreachable, errc::operation_canceled})
    EXPECT_FALSE(is_local_fault(errc::make_error_code(fault))) << fault;
  EXPECT_FALSE(is_local_fault({}));
}

TEST(LocalFault, IsMendedByMoreDescriptorsWhereTheseAreGone) {
  EXPECT_TRUE(is_lack_of_descriptors(boost::asio::error::no_descriptors));
  EXPECT_FALSE(is_lack_of_descriptors(boost::asio::error::no_buffer_space));
}

TEST(LowestFreeDescriptor, IsTheNextOne) {
  const auto free = lowest_free_descriptor(STDERR_FILENO);
  ASSERT_TRUE(free);
  const int next = ::dup(STDERR_FILENO);
  EXPECT_EQ(next, *free);
  ::close(next);
}

TEST(LowestFreeDescriptor, IsNoneWhereAllAreInUse) {
  const test::NoDescriptors none;
  EXPECT_EQ(lowest_free_descriptor(STDERR_FILENO), std::nullopt);
}

TEST(DescriptorBudget, KeepsTheLastOnesForHealthChecksAndTheVeryLastForTheAdminAddress) {
  const DescriptorBudget budget(800);  // an eighth is 100
  EXPECT_TRUE(budget.allows(DescriptorUse::Requests, 599));
  EXPECT_FALSE(budget.allows(DescriptorUse::Requests, 600));
  EXPECT_TRUE(budget.allows(DescriptorUse::Control, 699));
  EXPECT_FALSE(budget.allows(DescriptorUse::Control, 700));
  EXPECT_FALSE(budget.allows(DescriptorUse::Control, -1));
  EXPECT_EQ(budget.admin_connections(), 80U);
  EXPECT_EQ(DescriptorBudget(1'000'000).admin_connections(), 256U);
}

TEST(DescriptorBudget, LeavesEachClientItsConnectionsToTwoWorkers) {
  DescriptorBudget budget(800);
  EXPECT_EQ(budget.clients_that_fit(30), 190U);
  // 30 of its own, 189 clients: the next one may need two, as may they.
  EXPECT_TRUE(budget.has_room_for_client(30 + 189, 189));
  EXPECT_FALSE(budget.has_room_for_client(30 + 190, 190));
  // They are there already.
  std::vector<DescriptorBudget::Held> held;
  for (int i = 0; i < 200; ++i) held.emplace_back(&budget);
  EXPECT_TRUE(budget.has_room_for_client(30 + 189 + 200, 189));
  EXPECT_FALSE(budget.has_room_for_client(30 + 190 + 200, 190));
  // A hole below tells little.
  EXPECT_FALSE(budget.has_room_for_client(5, 500));
}

TEST(DescriptorBudget, ForgetsAConnectionThatHasEnded) {
  DescriptorBudget budget(800);
  {
    DescriptorBudget::Held first(&budget);
    const DescriptorBudget::Held moved = std::move(first);
    EXPECT_TRUE(budget.has_room_for_client(597, 0));
  }
  EXPECT_TRUE(budget.has_room_for_client(597, 0));
  EXPECT_FALSE(budget.has_room_for_client(598, 0));
}

TEST(DescriptorBudget, OfNoneAllowsNobodyAnything) {
  const DescriptorBudget budget(0);
  EXPECT_FALSE(budget.allows(DescriptorUse::Control, 0));
  EXPECT_FALSE(budget.has_room_for_client(0, 0));
  EXPECT_EQ(budget.clients_that_fit(0), 0U);
}

TEST(DescriptorBudget, WarnsOfAShortageOnce) {
  std::vector<std::string> warnings;
  DescriptorBudget budget(100, [&](std::string_view what) { warnings.emplace_back(what); });
  EXPECT_FALSE(budget.short_lately());
  for (int i = 0; i < 100; ++i) budget.went_short("clients");
  EXPECT_THAT(warnings, ElementsAre("clients"));
  EXPECT_TRUE(budget.short_lately());
}

}  // namespace
}  // namespace baton::net
