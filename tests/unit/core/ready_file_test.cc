// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/ready_file.h"

#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace baton {
namespace {

namespace fs = std::filesystem;

struct ReadyFile : testing::Test {
  const test::TemporaryDirectory directory;
  const fs::path& folder = directory.path();
};

TEST_F(ReadyFile, HoldsTheAddressAndNothingIsLeftBesideIt) {
  const fs::path file = folder / "ready";
  ASSERT_TRUE(write_ready_file(file.string(), "127.0.0.1:80"));
  ASSERT_TRUE(write_ready_file(file.string(), "[::1]:8080"));
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "[::1]:8080\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(ReadyFile, SaysWhereItCannotBeWritten) {
  const std::string nowhere = (folder / "missing" / "ready").string();
  const auto written = write_ready_file(nowhere, "127.0.0.1:80");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message(), testing::HasSubstr(nowhere));
}

}  // namespace
}  // namespace baton
