// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace baton::model {

// The engines that some workers run.
class EngineSet {
 public:
  constexpr EngineSet() = default;
  constexpr EngineSet(std::initializer_list<Engine> engines) {
    for (const Engine engine : engines) add(engine);
  }

  constexpr void add(Engine engine) { bits_ |= bit(engine); }
  constexpr EngineSet& operator|=(EngineSet other) {
    bits_ |= other.bits_;
    return *this;
  }
  constexpr EngineSet without(Engine engine) const {
    EngineSet rest = *this;
    rest.bits_ &= ~bit(engine);
    return rest;
  }
  constexpr bool contains(Engine engine) const { return (bits_ & bit(engine)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return std::popcount(bits_); }
  bool operator==(const EngineSet&) const = default;

 private:
  static constexpr std::uint32_t bit(Engine engine) {
    return std::uint32_t{1} << static_cast<unsigned>(engine);
  }
  std::uint32_t bits_ = 0;
};

}  // namespace baton::model
