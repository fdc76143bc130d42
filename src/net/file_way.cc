// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/file_way.h"

#include <deque>
#include <system_error>

namespace baton::net {
namespace fs = std::filesystem;

FileWay find_way(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel: more are a circle
  FileWay way;
  fs::path directory = "/";
  std::deque<std::string> names;
  const auto go_to = [&](const fs::path& target) {
    if (target.is_absolute()) directory = "/";
    const fs::path relative = target.relative_path();
    names.insert(names.begin(), relative.begin(), relative.end());
  };
  go_to(path);
  int links = 0;
  while (!names.empty()) {
    const std::string name = std::move(names.front());
    names.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      directory = directory.parent_path();
      continue;
    }
    way.steps.push_back({directory, name});
    const fs::path here = directory / name;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(here, error);
    if (status.type() == fs::file_type::symlink) {
      const fs::path target = fs::read_symlink(here, error);
      if (error || ++links > kMostLinks) return way;
      go_to(target);
    } else if (status.type() == fs::file_type::directory) {
      directory = here;
    } else {
      if (names.empty() && fs::exists(status)) way.file = here;
      return way;
    }
  }
  return way;
}

}  // namespace baton::net
