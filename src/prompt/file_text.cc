// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/file_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <ios>
#include <iterator>
#include <system_error>

namespace baton::prompt {
namespace {

constexpr std::uintmax_t kLargest = 64UZ << 20;

}  // namespace

Result<std::optional<std::string>> file_text(const std::filesystem::path& path) {
  std::error_code problem;
  if (!std::filesystem::exists(path, problem)) return std::nullopt;
  const std::uintmax_t size = std::filesystem::file_size(path, problem);
  if (problem) {
    return fail(Errc::InvalidRequest,
                fmt::format("cannot read {}: {}", path.string(), problem.message()));
  }
  if (size > kLargest) {
    return fail(Errc::InvalidRequest,
                fmt::format("{} is larger than {} MiB", path.string(), kLargest >> 20));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) {
    return fail(Errc::InvalidRequest, fmt::format("cannot read {}", path.string()));
  }
  return text;
}

}  // namespace baton::prompt
