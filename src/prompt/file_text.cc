// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/file_text.h"

#include "core/regular_file.h"

#include <fmt/format.h>

#include <cstddef>

namespace baton::prompt {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 20;

}  // namespace

Result<std::optional<std::string>> file_text(const std::filesystem::path& path) {
  auto text = read_regular_file(path.string(), kLargest);
  if (text) return text;
  return fail(Errc::InvalidRequest,
              fmt::format("cannot read {}: {}", path.string(), text.error().message()));
}

}  // namespace baton::prompt
