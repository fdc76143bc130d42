// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace baton::sim {

// Role. Writes msgpack, each value in its shortest form. The router's reader of it is another's
//   work, so that the two cannot agree on the same mistake.
// Confinement. One thread.
// Lifetime. Owns what it has written until `take`.
// Invariants. None of its own: the caller that opens an array or a map writes what it announced.
class MsgpackWriter {
 public:
  void array(std::size_t elements) { head(elements, 0x90, 15, 0xDC); }
  void map(std::size_t pairs) { head(pairs, 0x80, 15, 0xDE); }
  void nil() { byte(0xC0); }
  void number(std::uint64_t value);
  void signed_number(std::int64_t value);
  void real(double value);
  void text(std::string_view value);
  void bytes(std::span<const std::uint8_t> value);

  std::string take() { return std::move(out_); }

 private:
  void byte(unsigned value) { out_.push_back(static_cast<char>(value)); }
  void big_endian(std::uint64_t value, unsigned bytes);
  void head(std::size_t count, unsigned fixed, std::size_t most, unsigned wide);

  std::string out_;
};

}  // namespace baton::sim
