// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/network.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <string>

namespace baton::model {
namespace {

constexpr unsigned kMappedBits = 96;  // of ::ffff:0:0/96, where IPv4 lives

bool is_ipv4(std::string_view text) { return text.find(':') == text.npos; }

// The address with all bits after the first `bits` cleared.
Address masked(Address address, unsigned bits) {
  for (unsigned i = 0; i < address.size(); ++i) {
    const unsigned kept = std::min(bits - std::min(bits, i * 8), 8U);
    address[i] = static_cast<std::uint8_t>(address[i] & (0xff00U >> kept));
  }
  return address;
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  const std::string spelled(text.substr(0, is_ipv4(text) ? text.npos : text.find('%')));
  // inet_pton would stop at it, and take what stands before for the whole.
  if (spelled.find('\0') != spelled.npos) return std::nullopt;
  Address address{};
  if (!is_ipv4(spelled)) {
    if (inet_pton(AF_INET6, spelled.c_str(), address.data()) != 1) return std::nullopt;
    return address;
  }
  address[10] = address[11] = 0xff;
  if (inet_pton(AF_INET, spelled.c_str(), &address[12]) != 1) return std::nullopt;
  return address;
}

bool Network::contains(const Address& other) const { return masked(other, bits) == address; }

std::optional<Network> parse_network(std::string_view text) {
  const auto slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  if (host.find('%') != host.npos) return std::nullopt;
  const auto address = parse_address(host);
  if (!address) return std::nullopt;
  if (slash == text.npos) return Network{*address, 128};

  const std::string_view digits = text.substr(slash + 1);
  unsigned bits = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, bits);
  if (digits.empty() || stop != end || error != std::errc{}) return std::nullopt;
  const unsigned offset = is_ipv4(host) ? kMappedBits : 0;
  if (bits > 128 - offset) return std::nullopt;
  bits += offset;
  if (masked(*address, bits) != *address) return std::nullopt;
  return Network{*address, bits};
}

}  // namespace baton::model
