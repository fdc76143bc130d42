// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace baton::net {

// How a path leads to its file: every name that is looked up in a directory, links followed. A
// change of any of them may make it lead elsewhere.
struct FileWay {
  struct Step {
    std::filesystem::path directory;  // without links
    std::string name;
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;     // up to the first name that is missing
  std::filesystem::path file;  // without links; empty where it is missing
  bool operator==(const FileWay&) const = default;
};

// Requires: an absolute path.
FileWay find_way(const std::filesystem::path& path);

}  // namespace baton::net
