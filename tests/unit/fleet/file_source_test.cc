// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/file_source.h"

#include "support/io_fixture.h"
#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace baton::fleet {
namespace {

using testing::HasSubstr;
using testing::Not;

// A directory with a configuration file.
struct Folder {
  std::string file() const { return directory.path("fleet.yaml"); }
  // A fleet of one worker with this role, and whatever else.
  void write(const std::string& role, const std::string& more = "") const {
    std::ofstream(file()) << "models: [{name: m, workers: [{url: 'http://127.0.0.1:1', role: "
                          << role << "}]}]\n"
                          << more;
  }
  test::TemporaryDirectory directory;
};

struct FileSourceTest : test::IoFixture {
  FileSourceTest() { folder.write("aggregated"); }
  ~FileSourceTest() override {
    if (source) source->stop();
    run_for(std::chrono::milliseconds(1));  // what was under way ends
  }
  void begin() {
    const config::Config config = *config::load(folder.file(), {});
    fleet = std::make_unique<Fleet>(config, metrics, log);
    source = std::make_unique<FileSource>(
        io, *fleet, config, folder.file(), [this] { return config::load(folder.file(), {}); },
        metrics, log);
  }
  model::Role role() const { return fleet->members().front().worker->spec().role; }

  Folder folder;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  std::unique_ptr<Fleet> fleet;
  std::unique_ptr<FileSource> source;
};

TEST_F(FileSourceTest, FollowsTheFile) {
  begin();
  source->start();
  folder.write("decode");
  run_until([&] { return role() == model::Role::Decode; });
  EXPECT_THAT(lines, HasSubstr("config_reloaded"));
  EXPECT_TRUE(source->status().well);
}

TEST_F(FileSourceTest, TakesWhatChangedBeforeItWasWatched) {
  begin();
  folder.write("decode");
  source->start();
  EXPECT_EQ(role(), model::Role::Decode);
}

TEST_F(FileSourceTest, KeepsTheOldStateUnderABrokenFileAndSaysSoUntilItIsMended) {
  begin();
  folder.write("nonsense");
  source->reload();
  EXPECT_EQ(role(), model::Role::Aggregated);
  EXPECT_FALSE(source->status().well);
  EXPECT_THAT(source->status().detail, HasSubstr("role"));
  EXPECT_THAT(lines, HasSubstr("config_refused"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_config_stale 1"));
  folder.write("decode");
  source->reload();
  EXPECT_EQ(role(), model::Role::Decode);
  EXPECT_TRUE(source->status().well);
  EXPECT_THAT(metrics.render(), HasSubstr("baton_config_stale 0"));
  EXPECT_THAT(metrics.render(), HasSubstr(R"(baton_config_reloads_total{outcome="refused"} 1)"));
}

TEST_F(FileSourceTest, KeepsTheOldStateWhereTheFileIsGone) {
  begin();
  std::filesystem::remove(folder.file());
  source->reload();
  EXPECT_EQ(role(), model::Role::Aggregated);
  EXPECT_FALSE(source->status().well);
}

TEST_F(FileSourceTest, SaysNothingOfAFileThatIsTheSame) {
  begin();
  source->reload();
  EXPECT_THAT(lines, Not(HasSubstr("config_reloaded")));
}

TEST_F(FileSourceTest, NamesWhatNeedsANewStart) {
  begin();
  folder.write("decode", "threads: 7\n");
  source->reload();
  EXPECT_EQ(role(), model::Role::Decode);
  EXPECT_THAT(lines, HasSubstr("config_needs_restart"));
  EXPECT_THAT(lines, HasSubstr("threads"));
}

}  // namespace
}  // namespace baton::fleet
