// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace baton::kvcache {

// A prompt as the trace has it: one number for each 512 tokens, equal where the prefixes are.
using TracePrompt = std::vector<std::uint32_t>;

// The conversations of a file in Mooncake's format; without a file, made-up ones of its shape.
std::vector<TracePrompt> load_trace(const std::string& path);
std::vector<TracePrompt> make_trace();

// What a fleet that serves a trace asks and tells, in order. Everything is made beforehand, so that
// only the index is on the clock.
struct Workload {
  enum class Kind : std::uint8_t { Lookup, Store, Remove };
  struct Operation {
    Kind kind;
    std::uint32_t worker;
    std::optional<EngineHash> parent;
    std::size_t first;  // in prompts, stored or removed
    std::size_t count;
  };
  std::size_t workers = 0;
  std::vector<Operation> operations;
  std::vector<SequenceHash> prompts;
  std::vector<NewBlock> stored;
  std::vector<EngineHash> removed;

  std::span<const SequenceHash> prompt(const Operation& operation) const {
    return std::span(prompts).subspan(operation.first, operation.count);
  }
  std::span<const NewBlock> blocks(const Operation& operation) const {
    return std::span(stored).subspan(operation.first, operation.count);
  }
  std::span<const EngineHash> names(const Operation& operation) const {
    return std::span(removed).subspan(operation.first, operation.count);
  }
};

// Each prompt is looked up, then computed by a worker that has begun of it before, or by the next;
// each worker keeps what it used last, so many blocks of 16 tokens.
Workload make_workload(const std::vector<TracePrompt>& trace, std::size_t workers,
                       std::size_t cached_blocks);

}  // namespace baton::kvcache
