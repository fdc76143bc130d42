// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::model {

// Which release of an engine a worker runs.
struct Version {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint16_t patch = 0;
  auto operator<=>(const Version&) const = default;
};

// Parses versions as engines write them: 0.27.1, 0.27, v1.3.0rc2, 0.5.10.post1,
// 0.27.1.dev3+g0123abc. Everything after the numbers is ignored: a release candidate counts as its
// release. nullopt if there is no major and minor number, or one is past 65535.
std::optional<Version> parse_version(std::string_view text);

}  // namespace baton::model
