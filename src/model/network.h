// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::model {

// An address, IPv4 as its IPv6-mapped form: one host has one value, however it was written.
using Address = std::array<std::uint8_t, 16>;

// 192.0.2.1, 2001:db8::1 or ::ffff:192.0.2.1, without brackets; a zone (%eth0) is left out.
std::optional<Address> parse_address(std::string_view text);

// All addresses that share the first `bits` bits.
struct Network {
  Address address{};  // the bits after the prefix are zero
  unsigned bits = 0;  // of 128; IPv4's 0…32 is 96…128
  bool contains(const Address& other) const;
  bool operator==(const Network&) const = default;
};

// Parses an address, or address/bits. Bits set after the prefix (10.0.0.1/8) are an error: the
// meaning is unclear.
std::optional<Network> parse_network(std::string_view text);

}  // namespace baton::model
