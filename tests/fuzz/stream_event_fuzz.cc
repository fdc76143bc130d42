// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/stream_event_reader.h"
#include "fuzz/fuzz_input.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace {

using namespace baton;
using fuzz::require;

void check(engine::StreamEventReader& reader, std::string_view data) {
  const engine::StreamEvent read = reader.read(data);
  const engine::StreamEvent parsed = engine::read_stream_event(data);
  require(read.kind == parsed.kind, "what an event is does not depend on those before");
  require(read.has_token == parsed.has_token && read.has_finish == parsed.has_finish,
          "nor does what it has");
  require(read.usage.has_value() == parsed.usage.has_value(), "nor its usage");
  if (!read.usage) return;
  require(read.usage->prompt_tokens == parsed.usage->prompt_tokens &&
              read.usage->completion_tokens == parsed.usage->completion_tokens &&
              read.usage->cached_tokens == parsed.usage->cached_tokens,
          "nor what that says");
}

}  // namespace

// The lines are the events of one stream.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  engine::StreamEventReader reader;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    check(reader, line);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return 0;
}
