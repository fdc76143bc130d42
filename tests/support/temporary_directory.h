// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace baton::test {

// A directory of its own for one test, gone with it: tests run beside one another, so no two may
// use the same file. Names are relative to it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    namespace fs = std::filesystem;
    std::string name = fs::canonical(fs::temp_directory_path()) / "baton-test-XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a directory for a test");
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::string path(const std::filesystem::path& name) const { return path_ / name; }
  // In place; directories on the way are made where absent. The path of the file.
  std::string write(const std::filesystem::path& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
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
