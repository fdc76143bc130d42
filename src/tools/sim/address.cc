// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/address.h"

#include <charconv>
#include <cstdint>
#include <string>

namespace baton::sim {

std::optional<model::Endpoint> parse_address(std::string_view scheme, std::string_view text) {
  if (!text.starts_with(scheme)) return std::nullopt;
  text.remove_prefix(scheme.size());
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find_first_of(":[]/") != std::string_view::npos)) {
    return std::nullopt;
  }
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || last != end || port == 0) return std::nullopt;
  return model::Endpoint{std::string(host), port};
}

}  // namespace baton::sim
