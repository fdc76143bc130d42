// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// Role. Writes one object as CPython's pickle does with protocol 5, byte for byte, because the
//   bytes are hashed: frames of 64 KiB, large texts outside of them, numbers in their shortest
//   form.
// Confinement. One thread.
// Lifetime. One object.
// Invariants. Pickle refers back to an object that it has written, which depends on whether two equal
//   texts are one object. Here they are as in an engine that has each from the wire: one object where
//   it is a single character below U+0100, of which CPython has one each, and else two.
class PickleWriter {
 public:
  void none();
  void integer(std::int64_t value);
  void bytes(std::span<const std::uint8_t> value);
  void text(std::string_view value);  // UTF-8
  // Requires: `size` objects between the two.
  void open_tuple(std::size_t size);
  void close_tuple(std::size_t size);
  // Requires: one object was written.
  std::vector<std::uint8_t> finish() &&;

 private:
  // Before each object: where a frame that is full ends.
  void next_object();
  void close_frame();
  void put(std::span<const std::uint8_t> bytes);
  void put(std::uint8_t opcode) { put({&opcode, 1}); }
  // With a header whose last bytes are the length.
  void put_long(std::span<const std::uint8_t> header, std::span<const std::uint8_t> data);
  void memoize();

  std::vector<std::uint8_t> out_{0x80, 5};
  std::optional<std::size_t> frame_;  // where it begins, with room for its head
  bool framed_ = true;
  std::uint32_t memoized_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> characters_;  // those that are in the memo
};

}  // namespace baton::sim
