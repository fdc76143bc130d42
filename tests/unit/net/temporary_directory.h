// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

namespace baton::test {

// A directory that is gone with the test. Names are relative to it.
class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : path_(std::filesystem::canonical(testing::TempDir()) /
              ("baton-net-test-" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directory(path_);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  // In place; the directory is made where absent.
  void write(const std::filesystem::path& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  void link(const std::filesystem::path& target, const std::filesystem::path& name) const {
    std::filesystem::create_symlink(target, path_ / name);
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) const {
    std::filesystem::rename(path_ / from, path_ / to);
  }
  void remove(const std::filesystem::path& name) const {
    std::filesystem::remove_all(path_ / name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace baton::test
